package disktest

import (
	"io/fs"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// Mutant is a defect of what writes files, planted between it and the disk. A suite
// that finds none of its defects proves nothing.
type Mutant string

// What is planted.
const (
	None Mutant = ""
	// NoSync forgets to sync files, NoFolderSync to sync folders.
	NoSync       Mutant = "no sync of files"
	NoFolderSync Mutant = "no sync of folders"
	// LateWrite writes when a file is closed, after its sync.
	LateWrite Mutant = "written after the sync"
	// InPlace truncates the file that is to be replaced and writes over it.
	InPlace Mutant = "replaced in place"
	// EarlyRename gives the new file its name before it has its content.
	EarlyRename Mutant = "renamed before it is written"
	// Rewrite appends by truncating the file and writing all of it again.
	Rewrite Mutant = "appended by writing all again"
)

// Folder is the disk as the program under test gets it: with the defect.
func (d *Disk) Folder() atomicfile.Folder { return mutated{d, d.mutant} }

type mutated struct {
	*Disk
	kind Mutant
}

// OpenFile implements atomicfile.Folder.
func (m mutated) OpenFile(name string, flag int, perm fs.FileMode) (atomicfile.File, error) {
	final, pending := strings.CutSuffix(name, atomicfile.Pending)
	switch {
	case m.kind == InPlace && pending:
		name = final
	case m.kind == EarlyRename && pending && flag&os.O_CREATE != 0:
		if err := m.nameEarly(name, final, flag, perm); err != nil {
			return nil, err
		}
		name, flag = final, flag&^os.O_TRUNC
	}
	f, err := m.Disk.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &mutatedFile{File: f, kind: m.kind, folder: f.(*file).inode.names != nil}, nil
}

func (m mutated) nameEarly(name, final string, flag int, perm fs.FileMode) error {
	empty, err := m.Disk.OpenFile(name, flag, perm)
	if err != nil {
		return err
	}
	if err := empty.Close(); err != nil {
		return err
	}
	if err := m.Disk.Rename(name, final); err != nil {
		return err
	}
	return atomicfile.Sync(m.Disk, ".")
}

// Rename implements atomicfile.Folder.
func (m mutated) Rename(from, to string) error {
	if m.kind == InPlace || m.kind == EarlyRename {
		return nil
	}
	return m.Disk.Rename(from, to)
}

type mutatedFile struct {
	atomicfile.File
	kind   Mutant
	folder bool
	late   []func() error
}

func (f *mutatedFile) Write(p []byte) (int, error) {
	switch f.kind {
	case LateWrite:
		p = append([]byte(nil), p...)
		f.late = append(f.late, func() error { _, err := f.File.Write(p); return err })
		return len(p), nil
	case Rewrite:
		all, err := f.takeContent()
		if err != nil {
			return 0, err
		}
		if _, err := f.File.Write(append(all, p...)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return f.File.Write(p)
}

func (f *mutatedFile) WriteAt(p []byte, at int64) (int, error) {
	switch f.kind {
	case LateWrite:
		p = append([]byte(nil), p...)
		f.late = append(f.late, func() error { _, err := f.File.WriteAt(p, at); return err })
		return len(p), nil
	case Rewrite:
		all, err := f.takeContent()
		if err != nil {
			return 0, err
		}
		if _, err := f.File.WriteAt(append(all[:min(at, int64(len(all)))], p...), 0); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return f.File.WriteAt(p, at)
}

// takeContent truncates the file and returns what was in it.
func (f *mutatedFile) takeContent() ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all := make([]byte, info.Size())
	if len(all) > 0 {
		if _, err := f.ReadAt(all, 0); err != nil {
			return nil, err
		}
	}
	return all, f.Truncate(0)
}

func (f *mutatedFile) Sync() error {
	if f.kind == NoSync && !f.folder || f.kind == NoFolderSync && f.folder {
		return nil
	}
	return f.File.Sync()
}

func (f *mutatedFile) Close() error {
	for _, write := range f.late {
		_ = write() // this defect asks nobody
	}
	return f.File.Close()
}
