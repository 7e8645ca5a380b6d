package sysmon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// keepingFS is /proc or /sys with files that stay open between snapshots, because opening
// a file costs more than most reads. The kernel generates the content for every read from
// the beginning. Files of processes (/proc/PID) do not stay open. The garbage collector
// closes the files of a keepingFS that is no longer used.
type keepingFS struct {
	fs.FS
	mu   sync.Mutex
	open map[string]*os.File
}

func newKeepingFS(folder string) *keepingFS {
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
	opened, ok := file.(*os.File)
	if !ok {
		return file, nil
	}
	if info, err := opened.Stat(); err != nil || !info.Mode().IsRegular() {
		return file, err
	}
	k.open[name] = opened
	return &keptFile{folder: k, name: name, file: opened}, nil
}

// ReadDir implements fs.ReadDirFS.
func (k *keepingFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(k.FS, name) }

// reopen opens a file again whose open descriptor fails, because its device went away and
// came back: a CPU that was offline.
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

// keptFile reads an open file from its beginning, independently of other readers.
type keptFile struct {
	folder *keepingFS
	name   string
	file   *os.File
	offset int64
	end    error // set when the file has ended
}

func (f *keptFile) Stat() (fs.FileInfo, error) { return f.file.Stat() }

func (f *keptFile) Read(p []byte) (int, error) {
	if f.end != nil {
		return 0, f.end
	}
	n, err := f.file.ReadAt(p, f.offset)
	if n == 0 && f.offset == 0 && err != nil && err != io.EOF {
		if file, openErr := f.folder.reopen(f.name, f.file); openErr == nil {
			f.file = file
			n, err = f.file.ReadAt(p, 0)
		}
	}
	f.offset += int64(n)
	f.end = err
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close leaves the file open.
func (f *keptFile) Close() error { return nil }
