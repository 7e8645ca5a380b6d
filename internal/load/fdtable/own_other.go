//go:build !linux

package fdtable

import (
	"errors"
	"fmt"
)

var errOther = fmt.Errorf("file tables of threads exist on Linux only: %w", errors.ErrUnsupported)

// Own gives the calling thread a file table of its own, on Linux; elsewhere
// it is an errors.ErrUnsupported.
func Own() error { return errOther }

// Limit is how many files one table may hold, on Linux; elsewhere it is an
// errors.ErrUnsupported.
func Limit() (int, error) { return 0, errOther }
