//go:build linux

package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func mount(source, target, fstype string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, fstype, flags, options); err != nil {
		return fmt.Errorf("mount %s (%s) on %s: %w", source, fstype, target, err)
	}
	return nil
}

// privateMounts keeps this process' mounts from the rest of the machine.
func privateMounts() error {
	return mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// memory mounts an empty file system in memory, making its folder.
func memory(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	mode := "mode=755"
	if filepath.Base(target) == "tmp" {
		mode = "mode=1777"
	}
	return mount("testbed", target, "tmpfs", 0, mode)
}

// bind shows a folder at another place too, making both if they aren't there.
func bind(source, target string) error {
	for _, dir := range []string{source, target} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// Where a node finds what the test bed brought.
const (
	nodeFiles    = "/opt/testbed"
	nodePrograms = nodeFiles + "/bin"
)

// nodeRoot builds a node's file system and makes it the root of this process,
// which has PID, mount, network and cgroup namespaces of its own: the machine's
// root with the node's own memory over it, so that everything that a node's
// programs and pods write at the usual places is the node's, and gone with it.
// Only what is large lies on the disk, in the state folder.
func nodeRoot(dir string, n Node, programs string) error {
	own := filepath.Join(dir, "memory", n.Name) // on the supervisor's tmpfs
	disk := filepath.Join(dir, "nodes", n.Name)
	root := filepath.Join(own, "root")
	if err := os.RemoveAll(own); err != nil { // of before the node was stopped
		return err
	}
	for _, name := range []string{"root", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(own, name), 0o755); err != nil {
			return err
		}
	}
	if err := mount("testbed", root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", filepath.Join(own, "upper"), filepath.Join(own, "work"))); err != nil {
		return err
	}
	in := func(path string) string { return filepath.Join(root, path) }
	if err := bind("/dev", in("/dev")); err != nil {
		return err
	}
	if err := mount("proc", in("/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", in("/sys"), "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mountGroups(root); err != nil {
		return err
	}
	// What is missing in the kernel is the product's to complain about.
	if err := mount("bpf", in("/sys/fs/bpf"), "bpf", 0, ""); err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENOENT) {
		return err
	}
	for _, path := range []string{"/run", "/tmp", "/etc/cni", "/etc/kubernetes", "/opt/cni", "/var/lib/cni"} {
		if err := memory(in(path)); err != nil {
			return err
		}
	}
	for path, source := range map[string]string{
		"/var/lib/containerd": filepath.Join(disk, "containerd"),
		"/var/lib/kubelet":    filepath.Join(disk, "kubelet"),
		"/var/log":            filepath.Join(dir, "logs", n.Name),
		nodeFiles:             filepath.Join(dir, "share"),
	} {
		if err := bind(source, in(path)); err != nil {
			return err
		}
	}
	// The kernel's modules: in a guest a mount of their own, which the overlay does not show.
	if _, err := os.Stat("/lib/modules"); err == nil {
		if err := bind("/lib/modules", in("/lib/modules")); err != nil {
			return err
		}
	}
	if err := mount(programs, in(nodePrograms), "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := hideSysctls(own, root); err != nil {
		return err
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root %s: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	// As on any node: what a pod mounts with propagation the node sees.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// hiddenSysctls are settings of the whole machine that kubelet insists on. A
// node sees them as kubelet wants them, and nobody sets the machine's.
var hiddenSysctls = map[string]string{
	"vm/overcommit_memory":             "1",
	"vm/panic_on_oom":                  "0",
	"kernel/panic":                     "10",
	"kernel/panic_on_oops":             "1",
	"kernel/keys/root_maxkeys":         "1000000",
	"kernel/keys/root_maxbytes":        "25000000",
	"kernel/unprivileged_bpf_disabled": "1",
	"kernel/timer_migration":           "0",
}

func hideSysctls(own, root string) error {
	for name, value := range hiddenSysctls {
		path := filepath.Join(root, "proc/sys", name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := filepath.Join(own, "sysctl", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}
