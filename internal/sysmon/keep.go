package sysmon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// keepingFS is a folder of /proc or /sys whose files stay open between
// snapshots: the kernel writes them anew for every read from their beginning,
// and opening them costs more than most reads. Files of other processes are
// not kept. They are closed when nothing refers to the folder any more.
type keepingFS struct {
	fs.FS
	mu   sync.Mutex
	open map[string]*os.File
}

func keeping(folder string) *keepingFS {
	return &keepingFS{FS: os.DirFS(folder), open: make(map[string]*os.File)}
}

// Open implements fs.FS.
func (k *keepingFS) Open(name string) (fs.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if file := k.open[name]; file != nil {
		return &keptFile{folder: k, name: name, file: file}, nil
	}
	file, err := k.FS.Open(name)
	if err != nil || name[0] >= '0' && name[0] <= '9' && strings.Contains(name, "/") {
		return file, err
	}
	of, ok := file.(*os.File)
	if !ok {
		return file, nil
	}
	if info, err := of.Stat(); err != nil || !info.Mode().IsRegular() {
		return file, err
	}
	k.open[name] = of
	return &keptFile{folder: k, name: name, file: of}, nil
}

// ReadDir implements fs.ReadDirFS.
func (k *keepingFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(k.FS, name) }

// reopen opens a file anew whose kept descriptor fails: its device (a CPU that
// was offline) went and came back.
func (k *keepingFS) reopen(name string, stale *os.File) (*os.File, error) {
	k.mu.Lock()
	if k.open[name] == stale {
		delete(k.open, name)
		stale.Close()
	}
	k.mu.Unlock()
	file, err := k.Open(name)
	if err != nil {
		return nil, err
	}
	kept, ok := file.(*keptFile)
	if !ok {
		return nil, errors.Join(fs.ErrInvalid, file.Close())
	}
	return kept.file, nil
}

// keptFile reads a kept file from its beginning, whoever else reads it.
type keptFile struct {
	folder *keepingFS
	name   string
	file   *os.File
	at     int64
	end    error // once the file has ended
}

func (f *keptFile) Stat() (fs.FileInfo, error) { return f.file.Stat() }

func (f *keptFile) Read(p []byte) (int, error) {
	if f.end != nil {
		return 0, f.end
	}
	n, err := f.file.ReadAt(p, f.at)
	if n == 0 && f.at == 0 && err != nil && err != io.EOF {
		if file, openErr := f.folder.reopen(f.name, f.file); openErr == nil {
			f.file = file
			n, err = f.file.ReadAt(p, 0)
		}
	}
	f.at += int64(n)
	f.end = err
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close leaves the file open.
func (f *keptFile) Close() error { return nil }
