//go:build !linux

package onnode

import "errors"

// Exec needs Linux.
func Exec(...string) error { return errors.New("nodes run Linux") }
