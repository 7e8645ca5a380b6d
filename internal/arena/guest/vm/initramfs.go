package vm

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The guest's first root holds this program, its order, and the modules that it needs before it
// can read the host's root.
const (
	initPath   = "/init"
	orderPath  = "/order.json"
	modulesDir = "/modules"
)

// order tells the guest's init what to do before it can receive frames.
type order struct {
	Modules  []string // below modulesDir, in the order of loading
	Release  string   // the release that the kernel must have
	Library  string   // its lib/modules/RELEASE, on the host
	Shares   []share  // folders shared for writing
	Drivers  []string // drivers of network devices, in the order in which the devices get their names
	Emulated bool
	Terminal bool

	Argv  []string
	Env   []string
	Dir   string
	Umask int
}

// share is a folder of the host that the guest can write.
type share struct{ Tag, Path string }

// rootTag is the mount tag of the host's root.
const rootTag = "root"

// standsAlone returns nil if the program needs no other file to start.
func standsAlone(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("the guest's init, %s: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return &Unsupported{
				Reason: program + " is linked dynamically, and a guest's first root has no libraries",
				Remedy: "build it with CGO_ENABLED=0",
			}
		}
	}
	return nil
}

// writeInitramfs writes the archive with init and its order.
func writeInitramfs(w io.Writer, init string, library string, o *order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	archive := &cpioWriter{w: w}
	for _, dir := range []string{"dev", "proc", "sys", "lower", "upper", "newroot", modulesDir[1:]} {
		archive.dir(dir)
	}
	archive.file(orderPath[1:], 0o600, int64(len(text)), bytes.NewReader(text))
	for _, module := range o.Modules {
		if err := archive.copyFile(modulesDir[1:]+"/"+filepath.Base(module), 0o600, filepath.Join(library, module)); err != nil {
			return err
		}
	}
	if err := archive.copyFile(initPath[1:], 0o700, init); err != nil {
		return err
	}
	return archive.close()
}

func (c *cpioWriter) copyFile(name string, perm os.FileMode, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	c.file(name, perm, info.Size(), f)
	return c.err
}
