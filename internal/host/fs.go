package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// FS is the files of a machine that hold its settings: small files, mostly of /proc and
// /sys. Names are absolute paths on that machine.
type FS interface {
	// ReadFile returns the whole file. A missing file is an fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
	// WriteFile replaces the content of an existing file. It creates no file.
	WriteFile(name string, data []byte) error
	// ReadDir returns the sorted names of the folder's entries.
	ReadDir(name string) ([]string, error)
	// Readlink returns the target of a symbolic link, as the link holds it.
	Readlink(name string) (string, error)
}

// Tree is the files below a folder: "/" is this machine, anything else a copy
// of a machine's files, such as a fixture; neither ".." nor a symbolic link leads out of it.
type Tree string

// ReadFile implements FS.
func (t Tree) ReadFile(name string) ([]byte, error) {
	f, err := t.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile implements FS.
func (t Tree) WriteFile(name string, data []byte) error {
	f, err := t.open(name, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	// A file of /proc or /sys takes its value in one write only.
	if _, err := f.Write(data); err != nil {
		_ = f.Close() // the write's error is the cause
		return err
	}
	return f.Close()
}

// ReadDir implements FS.
func (t Tree) ReadDir(name string) ([]string, error) {
	f, err := t.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Readlink implements FS.
func (t Tree) Readlink(name string) (link string, err error) {
	if t == "/" {
		return os.Readlink(clean(name))
	}
	err = t.within(func(root *os.Root) error {
		link, err = root.Readlink(below(name))
		return err
	})
	return link, err
}

// open opens a file of the tree, which has to be there.
func (t Tree) open(name string, flag int) (f *os.File, err error) {
	if t == "/" {
		return os.OpenFile(clean(name), flag, 0)
	}
	err = t.within(func(root *os.Root) error {
		f, err = root.OpenFile(below(name), flag, 0)
		return err
	})
	return f, err
}

// within calls fn with the tree's folder. This machine's own links may be
// absolute, which a root does not follow.
func (t Tree) within(fn func(*os.Root) error) error {
	root, err := os.OpenRoot(string(t))
	if err != nil {
		return err
	}
	return errors.Join(fn(root), root.Close())
}

func clean(name string) string { return filepath.Clean("/" + name) }

func below(name string) string { return filepath.Clean("." + clean(name)) }
