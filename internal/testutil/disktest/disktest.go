// Package disktest is a disk that fails: a atomicfile.Folder that counts what is done
// to it, answers with an error or half a write where it is told to, and knows
// what a power cut leaves. Only tests use it. Next: mutant.go.
package disktest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// inode is a file or folder: what its names are now, and what the disk has.
type inode struct {
	content       []byte // of a file, when it was synced last
	names, synced map[string]*inode
}

func newFolder() *inode { return &inode{names: map[string]*inode{}, synced: map[string]*inode{}} }

// Disk is a folder on a disk that fails.
type Disk struct {
	Dir   string // where its files are while there is power
	Log   []string
	real  atomicfile.Folder
	root  *inode
	fault Fault
	off   bool

	mutant Mutant
}

// Fault is what goes wrong, and with which operation, counted from 1.
type Fault struct {
	At  int   // 0 is never
	Err error // nil is a power cut: all later operations fail, too
}

// ErrOff is what a process would get that went on after a power cut.
var ErrOff = errors.New("the power is off")

// New is a disk with an empty folder, which is the caller's to remove.
func New(dir string, fault Fault) (*Disk, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Disk{Dir: dir, real: atomicfile.Root(r), root: newFolder(), fault: fault}, nil
}

// step counts an operation and returns its error.
func (d *Disk) step(op, name string) error {
	if d.off {
		return ErrOff
	}
	d.Log = append(d.Log, op+" "+name)
	if len(d.Log) != d.fault.At {
		return nil
	}
	if d.fault.Err == nil {
		d.off = true
		return ErrOff
	}
	return &fs.PathError{Op: op, Path: name, Err: d.fault.Err}
}

// find returns the folder that holds the name, and its last element.
func (d *Disk) find(name string) (*inode, string) {
	at := d.root
	parts := strings.Split(filepath.ToSlash(filepath.Clean(name)), "/")
	for _, part := range parts[:len(parts)-1] {
		at = at.names[part]
	}
	return at, parts[len(parts)-1]
}

// OpenFile implements atomicfile.Folder.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (atomicfile.File, error) {
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if err := d.step("open", name); err != nil {
			return nil, err
		}
	}
	if flag&os.O_WRONLY != 0 { // Sync reads
		flag = flag&^os.O_WRONLY | os.O_RDWR
	}
	f, err := d.real.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if filepath.Clean(name) == "." {
		return &file{File: f, disk: d, name: name, inode: d.root}, nil
	}
	folder, base := d.find(name)
	if folder.names[base] == nil {
		folder.names[base] = &inode{}
	}
	return &file{File: f, disk: d, name: name, inode: folder.names[base]}, nil
}

// MkdirAll implements atomicfile.Folder.
func (d *Disk) MkdirAll(name string, perm fs.FileMode) error {
	if err := d.step("mkdir", name); err != nil {
		return err
	}
	at := d.root
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(name)), "/") {
		if at.names[part] == nil {
			at.names[part] = newFolder()
		}
		at = at.names[part]
	}
	return d.real.MkdirAll(name, perm)
}

// Remove implements atomicfile.Folder.
func (d *Disk) Remove(name string) error { return d.remove(name, d.real.Remove) }

// RemoveAll implements atomicfile.Folder.
func (d *Disk) RemoveAll(name string) error { return d.remove(name, d.real.RemoveAll) }

func (d *Disk) remove(name string, remove func(string) error) error {
	if err := d.step("remove", name); err != nil {
		return err
	}
	if err := remove(name); err != nil {
		return err
	}
	at := d.root
	parts := strings.Split(filepath.ToSlash(filepath.Clean(name)), "/")
	for _, part := range parts[:len(parts)-1] {
		if at = at.names[part]; at == nil {
			return nil
		}
	}
	delete(at.names, parts[len(parts)-1])
	return nil
}

// Rename implements atomicfile.Folder.
func (d *Disk) Rename(from, to string) error {
	if err := d.step("rename", to); err != nil {
		return err
	}
	if err := d.real.Rename(from, to); err != nil {
		return err
	}
	a, old := d.find(from)
	b, name := d.find(to)
	b.names[name] = a.names[old]
	delete(a.names, old)
	return nil
}

// Close implements atomicfile.Folder.
func (d *Disk) Close() error { return d.real.Close() }

type file struct {
	atomicfile.File
	disk  *Disk
	name  string
	inode *inode
}

// half has half of p written where the operation fails.
func (f *file) half(op string, p []byte, write func([]byte) (int, error)) (int, error) {
	off := f.disk.off
	if err := f.disk.step(op, f.name); err != nil {
		n := 0
		if !off {
			n, _ = write(p[:len(p)/2])
		}
		return n, err
	}
	return write(p)
}

func (f *file) Write(p []byte) (int, error) { return f.half("write", p, f.File.Write) }

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	return f.half("write", p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *file) Truncate(size int64) error {
	if err := f.disk.step("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync is what the disk knows of; the real one need not.
func (f *file) Sync() error {
	if err := f.disk.step("sync", f.name); err != nil {
		return err
	}
	if f.inode.names != nil {
		f.inode.synced = maps.Clone(f.inode.names)
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content := make([]byte, info.Size())
	if _, err := f.ReadAt(content, 0); err != nil && len(content) > 0 {
		return err
	}
	f.inode.content = content
	return nil
}

// Survivors are what there can be after a power cut.
var Survivors = []string{"what was synced", "all names, and what was synced of their content", "everything"}

// Restore makes in an empty folder what survived.
func (d *Disk) Restore(survivor, dir string) error {
	if survivor == Survivors[2] {
		return os.CopyFS(dir, os.DirFS(d.Dir))
	}
	return d.root.restore(dir, func(i *inode) map[string]*inode {
		if survivor == Survivors[0] {
			return i.synced
		}
		return i.names
	})
}

func (i *inode) restore(path string, names func(*inode) map[string]*inode) error {
	if i.names == nil {
		return os.WriteFile(path, i.content, 0o644)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for name, child := range names(i) {
		if err := child.restore(filepath.Join(path, name), names); err != nil {
			return err
		}
	}
	return nil
}

// Reporter is what a check needs of a *testing.T.
type Reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Suite does something on a disk, and checks what is then in the folder.
type Suite[T any] struct {
	Do    func(d *Disk) T
	Check func(r Reporter, did T, dir string)
}

// Every does it on a good disk, and then once for every operation that
// this took on a disk where that operation fails: with an error, with a full
// disk, and with a power cut. Check gets what is then in the folder; after a
// power cut for all Survivors.
func (s Suite[T]) Every(t *testing.T) {
	t.Helper()
	s.each(t, None, func(name string, check func(r Reporter), log []string) bool {
		return t.Run(name, func(t *testing.T) {
			check(t)
			if t.Failed() {
				t.Logf("operations:\n%s", strings.Join(log, "\n"))
			}
		})
	})
}

// Finds plants each of the defects and fails if no check reports it.
func (s Suite[T]) Finds(t *testing.T, mutants ...Mutant) {
	t.Helper()
	for _, mutant := range mutants {
		t.Run(string(mutant), func(t *testing.T) {
			var found *recorder
			s.each(t, mutant, func(name string, check func(r Reporter), _ []string) bool {
				r := &recorder{}
				ended := make(chan struct{})
				go func() { // Fatalf ends its goroutine
					defer close(ended)
					check(r)
				}()
				<-ended
				if r.text == "" {
					return true
				}
				found = r
				t.Logf("found by %s: %s", name, r.text)
				return false
			})
			if found == nil {
				t.Error("the defect is not found")
			}
		})
	}
}

// recorder keeps the first report.
type recorder struct{ text string }

func (*recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.text = cmp.Or(r.text, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// memory is where a sync costs nothing: what one is worth the Disk knows.
const memory = "/dev/shm"

// each runs a suite on a disk with that defect for each fault of each operation, until
// run returns false.
func (s Suite[T]) each(t *testing.T, mutant Mutant, run func(name string, check func(r Reporter), log []string) bool) {
	t.Helper()
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", memory) // what is written is synced for real, too, by Check
	}
	start := func(fault Fault) (*Disk, T) {
		d, err := New(t.TempDir(), fault)
		if err != nil {
			t.Fatal(err)
		}
		d.mutant = mutant
		t.Cleanup(func() { _ = d.Close() }) // the folder goes with the test
		return d, s.Do(d)
	}
	good, _ := start(Fault{})
	t.Logf("%d operations", len(good.Log))
	good.Log = append(good.Log, "nothing, after the last operation")
	for at := range good.Log {
		for _, fault := range []Fault{{at + 1, syscall.EIO}, {at + 1, syscall.ENOSPC}, {at + 1, nil}} {
			d, did := start(fault)
			survivors := Survivors
			if fault.Err != nil {
				survivors = Survivors[2:]
			}
			for _, survivor := range survivors {
				name := fmt.Sprintf("%d %s: %v: %s", at+1, strings.ReplaceAll(good.Log[at], "/", "_"), fault.Err, survivor)
				dir := t.TempDir()
				if err := d.Restore(survivor, dir); err != nil {
					t.Fatal(err)
				}
				if !run(name, func(r Reporter) { s.Check(r, did, dir) }, d.Log) && mutant != None {
					return
				}
			}
		}
	}
}
