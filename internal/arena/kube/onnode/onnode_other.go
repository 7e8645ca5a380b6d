//go:build !linux

package onnode

import "errors"

// Exec is of Linux.
func Exec(...string) error { return errors.New("nodes run Linux") }
