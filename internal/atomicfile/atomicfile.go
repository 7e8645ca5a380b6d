// Package atomicfile writes files that outlive a power cut: what a call returned
// without an error is on the disk, whole, under its name. The store, the journal
// of tunings, caches and recordings write through Folder, below which tests put a
// disk that fails (disktest). It knows no format and no run. Next: atomicfile.go.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is what is needed of an *os.File.
type File interface {
	io.ReadWriteSeeker
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Fd() uintptr
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// Folder is what is needed of an *os.Root.
type Folder interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	MkdirAll(name string, perm fs.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	Rename(from, to string) error
	Close() error
}

type root struct{ *os.Root }

func (r root) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := r.Root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Root is a real folder.
func Root(r *os.Root) Folder { return root{r} }

// Sync makes the names in a folder last.
func Sync(f Folder, name string) error {
	d, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncPath is Sync for a folder of the file system.
func SyncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Write writes a file and waits until the disk has its content; its name
// lasts after a Sync of its folder.
func Write(f Folder, name string, write func(io.Writer) error) error {
	return writeMode(f, name, 0o644, write)
}

func writeMode(f Folder, name string, mode fs.FileMode, write func(io.Writer) error) error {
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Pending is the name of a file until it takes the place of another. What a
// killed process leaves is written over by the next.
const Pending = ".tmp"

// Replace replaces the file of that name by what write writes: the disk has
// the whole of it under another name before it takes its place.
func Replace(f Folder, name string, write func(io.Writer) error) error {
	return replaceMode(f, name, 0o644, write)
}

func replaceMode(f Folder, name string, mode fs.FileMode, write func(io.Writer) error) error {
	if err := writeMode(f, name+Pending, mode, write); err != nil {
		return errors.Join(err, discard(f, name+Pending))
	}
	return Commit(f, name)
}

// Commit gives the synced file name+Pending its name.
func Commit(f Folder, name string) error {
	if err := f.Rename(name+Pending, name); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), discard(f, name+Pending))
	}
	return Sync(f, filepath.Dir(name))
}

func discard(f Folder, name string) error {
	if err := f.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReplaceFile is Replace for a file of the file system, whatever links lead to it; it
// keeps the file's mode. A pipe or a device is written as it is.
func ReplaceFile(path string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o644)
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return writeThrough(path, write)
	case err == nil:
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	r, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer r.Close()
	return replaceMode(Root(r), filepath.Base(path), mode, write)
}

func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}
