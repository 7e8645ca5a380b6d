package vm

import (
	"fmt"
	"io"
	"io/fs"
)

// cpioWriter writes an archive in the "newc" format, which the kernel unpacks
// as its first root: Documentation/driver-api/early-userspace/buffer-format.rst.
type cpioWriter struct {
	w     io.Writer
	inode int
	n     int64 // bytes written, for the padding
	err   error
}

// The file types of mode, as in stat(2).
const (
	cpioDir  = 0o040000
	cpioFile = 0o100000
)

// dir adds a folder. Its parent must have been added before.
func (c *cpioWriter) dir(name string) { c.entry(name, cpioDir|0o755, 0, nil) }

// file adds a file with the size. Its folder must have been added before.
func (c *cpioWriter) file(name string, perm fs.FileMode, size int64, content io.Reader) {
	c.entry(name, cpioFile|uint32(perm.Perm()), size, content)
}

func (c *cpioWriter) entry(name string, mode uint32, size int64, content io.Reader) {
	if c.err != nil {
		return
	}
	if size >= 1<<32 {
		c.err = fmt.Errorf("%s: %d bytes don't fit into a newc archive", name, size)
		return
	}
	c.inode++
	nlink := 1
	if mode&cpioDir != 0 {
		nlink = 2
	}
	// ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor,
	// rdevmajor, rdevminor, namesize, check
	c.printf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, mode, 0, 0, nlink, 0, size, 0, 0, 0, 0, len(name)+1, 0)
	c.printf("%s\x00", name)
	c.pad(4)
	if content == nil || c.err != nil {
		return
	}
	written, err := io.Copy(c.w, io.LimitReader(content, size))
	c.n += written
	if err == nil && written != size {
		err = fmt.Errorf("%s: %d bytes instead of %d: changed while it was read", name, written, size)
	}
	if c.err == nil {
		c.err = err
	}
	c.pad(4)
}

// close ends the archive.
func (c *cpioWriter) close() error {
	c.entry("TRAILER!!!", 0, 0, nil)
	c.pad(512)
	return c.err
}

func (c *cpioWriter) printf(format string, args ...any) {
	if c.err != nil {
		return
	}
	n, err := fmt.Fprintf(c.w, format, args...)
	c.n += int64(n)
	c.err = err
}

func (c *cpioWriter) pad(to int64) {
	if short := (to - c.n%to) % to; short > 0 {
		c.printf("%s", make([]byte, short))
	}
}
