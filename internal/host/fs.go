package host

import (
	"os"
	"path/filepath"
)

// FS is a machine's files as settings are kept in: small, mostly of /proc and
// /sys. Names are absolute paths on that machine.
type FS interface {
	// ReadFile is the whole file. A missing one is an fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
	// WriteFile replaces what is in a file that exists; it makes none.
	WriteFile(name string, data []byte) error
	// ReadDir is the names of what is in the folder, sorted.
	ReadDir(name string) ([]string, error)
	// Readlink is where a symbolic link points, as it is written.
	Readlink(name string) (string, error)
}

// Tree is the files below a folder: "/" is this machine, anything else a copy
// of one, such as a fixture.
type Tree string

// ReadFile implements FS.
func (t Tree) ReadFile(name string) ([]byte, error) { return os.ReadFile(t.path(name)) }

// WriteFile implements FS.
func (t Tree) WriteFile(name string, data []byte) error {
	f, err := os.OpenFile(t.path(name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	// One write: a file of /proc or /sys takes its value whole.
	if _, err := f.Write(data); err != nil {
		_ = f.Close() // the write's error is the cause
		return err
	}
	return f.Close()
}

// ReadDir implements FS.
func (t Tree) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(t.path(name))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Readlink implements FS.
func (t Tree) Readlink(name string) (string, error) { return os.Readlink(t.path(name)) }

// path is the name below the root, which ".." does not leave.
func (t Tree) path(name string) string { return filepath.Join(string(t), filepath.Clean("/"+name)) }
