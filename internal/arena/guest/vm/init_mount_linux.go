package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

type mount struct {
	source, target, fstype string
	flags                  uintptr
	options                string
}

func (m mount) mount() error {
	if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.fstype, m.target, err)
	}
	return nil
}

// The mount options of the host's folders. The root is read-only and only the guest's overlay
// changes, so the guest may cache what it has read. A folder that is shared for writing is
// written through, so that the host has all data even if the guest dies.
const (
	nineP      = "trans=virtio,version=9p2000.L,msize=512000,access=any"
	rootCache  = nineP + ",cache=loose"
	shareCache = nineP + ",cache=mmap"
)

// newRoot is the folder where the guest's root is assembled.
const newRoot = "/newroot"

// mountRoot makes the host's root, read-only under a temporary overlay, the guest's root. It
// mounts the file systems that a kernel has for itself.
func (g *guest) mountRoot() error {
	for _, m := range []mount{
		{rootTag, "/lower", "9p", unix.MS_RDONLY, rootCache},
		{"cnibench", "/upper", "tmpfs", 0, "mode=755"},
	} {
		if err := m.mount(); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/upper/files", "/upper/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	overlay := mount{"cnibench", newRoot, "overlay", 0, "lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work"}
	if err := overlay.mount(); err != nil {
		return err
	}
	if err := g.mountKernelFiles(); err != nil {
		return err
	}
	// The guest's own modules must be mounted before /run and the like are hidden.
	if err := bindDir("/lower"+g.order.Library, newRoot+"/lib/modules/"+g.order.Release); err != nil {
		return fmt.Errorf("modules of the guest's kernel: %w", err)
	}
	for _, s := range g.order.Shares {
		target := newRoot + s.Path
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := (mount{s.Tag, target, "9p", 0, shareCache}).mount(); err != nil {
			return err
		}
	}
	return switchRoot()
}

// mountKernelFiles mounts the kernel's file systems and the folders that are empty when a
// machine boots.
func (g *guest) mountKernelFiles() error {
	const nosuid = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	needed := []mount{
		{"/proc", "/proc", "", unix.MS_MOVE, ""},
		{"/sys", "/sys", "", unix.MS_MOVE, ""},
		{"/dev", "/dev", "", unix.MS_MOVE, ""},
		{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=620,ptmxmode=666"},
		{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", nosuid, ""},
		{"bpf", "/sys/fs/bpf", "bpf", nosuid, "mode=700"},
	}
	for _, m := range needed {
		m.target = newRoot + m.target
		if err := os.Mkdir(m.target, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := m.mount(); err != nil {
			return err
		}
	}
	// Tools look here; a kernel may lack it.
	for _, m := range []mount{
		{"debugfs", "/sys/kernel/debug", "debugfs", nosuid, "mode=700"},
		{"tracefs", "/sys/kernel/tracing", "tracefs", nosuid, "mode=700"},
	} {
		m.target = newRoot + m.target
		_ = m.mount()
	}
	for link, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(target, newRoot+"/dev/"+link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.Mkdir(newRoot+"/run/netns", 0o755); err != nil {
		return err
	}
	return enableControllers(newRoot + "/sys/fs/cgroup")
}

// enableControllers enables every controller for the children of the root cgroup.
func enableControllers(root string) error {
	names, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(names)) {
		// A controller may refuse, such as cpu if there are real-time processes. A program that
		// needs it will report that.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+name), 0)
	}
	return nil
}

// bindDir makes the folder visible at a second place.
func bindDir(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return (mount{from, to, "", unix.MS_BIND, ""}).mount()
}

// switchRoot makes newRoot the root of this process and of the kernel's helpers, as
// switch_root(8) does, because pivot_root does not work for the first root.
func switchRoot() error {
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := (mount{".", "/", "", unix.MS_MOVE, ""}).mount(); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return unix.Chdir("/")
}
