//go:build !linux

package node

import (
	"context"
	"errors"
)

func inspect(context.Context, Request, *Answer) error {
	return errors.New("agent node: nodes run Linux")
}

// Exec needs Linux.
func Exec(...string) error { return errors.New("agent on-node: nodes run Linux") }
