//go:build !linux

package node

import (
	"context"
	"errors"
)

func inspect(context.Context, Request, *Answer) error {
	return errors.New("agent node: nodes run Linux")
}
