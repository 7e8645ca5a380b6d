package result

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// replace makes or replaces a file of the run directory. If write fails, nothing changes.
func replace(f atomicfile.Folder, name string, write func(io.Writer) error) error {
	return spaceError(atomicfile.Replace(f, name, write))
}

// spaceError makes a full disk or quota an ErrNoSpace; other errors stay.
func spaceError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w; make room, then go on with --resume", ErrNoSpace, err)
	}
	return err
}
