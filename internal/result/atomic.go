package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// writeAtomic replaces the file of that name by what write writes: it is on
// the disk under another name before it takes its place.
func writeAtomic(root *os.Root, name string, write func(io.Writer) error) error {
	temp := name + ".tmp"
	if err := writeSynced(root, temp, write); err != nil {
		root.Remove(temp)
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		root.Remove(temp)
		return spaceError(fmt.Errorf("write %s: %w", name, err))
	}
	return syncRoot(root, ".")
}

// writeSynced writes a file and waits until the disk has it.
func writeSynced(root *os.Root, name string, write func(io.Writer) error) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return spaceError(err)
	}
	w := bufio.NewWriter(f)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return spaceError(fmt.Errorf("write %s: %w", name, err))
	}
	return nil
}

// syncRoot makes the names in a folder below root last.
func syncRoot(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(spaceError(d.Sync()), d.Close())
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(spaceError(d.Sync()), d.Close())
}

// spaceError makes a full disk or quota an ErrNoSpace; other errors stay.
func spaceError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w; make room, then go on with --resume", ErrNoSpace, err)
	}
	return err
}
