//go:build linux

package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is one tree of cgroups.
type hierarchy struct {
	dir     string // where it is mounted, below cgroupRoot: "memory", "unified", "" if there is but one
	fstype  string // cgroup or cgroup2
	options string // of a mount of it
}

// hierarchies lists the trees as they are mounted on this machine: one of
// version 2, or those of version 1 with or without one of version 2.
func hierarchies() ([]hierarchy, error) {
	var fsinfo unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &fsinfo); err != nil {
		return nil, fmt.Errorf("%s: %w", cgroupRoot, err)
	}
	if fsinfo.Type == unix.CGROUP2_SUPER_MAGIC {
		return []hierarchy{{fstype: "cgroup2"}}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var all []hierarchy
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(cgroupRoot, entry.Name(), "cgroup.procs")); err != nil || !entry.IsDir() {
			continue
		}
		h := hierarchy{dir: entry.Name(), fstype: "cgroup", options: entry.Name()}
		switch entry.Name() {
		case "unified":
			h.fstype, h.options = "cgroup2", ""
		case "systemd":
			h.options = "none,name=systemd"
		}
		all = append(all, h)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted at %s; in a container start that with --privileged", cgroupRoot)
	}
	return all, nil
}

// path is a group's folder in the hierarchy.
func (h hierarchy) path(group ...string) string {
	return filepath.Join(append([]string{cgroupRoot, h.dir}, group...)...)
}

// groupName is the name of a test bed's cgroup in every hierarchy.
func groupName(id string) string { return "cnibench-testbed-" + id }

// makeGroup makes a cgroup in every hierarchy, ready for processes.
func makeGroup(group ...string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		path := h.path(group...)
		if h.dir == "" {
			if err := delegate(filepath.Dir(path)); err != nil {
				return err
			}
		}
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup: %w", err)
		}
		if h.dir != "cpuset" {
			continue
		}
		// A new cpuset has no CPU and takes no process.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
			if err == nil {
				err = os.WriteFile(filepath.Join(path, name), content, 0o644)
			}
			if err != nil {
				return fmt.Errorf("cgroup: %w", err)
			}
		}
	}
	return nil
}

// delegate lets the groups below a group of version 2 have its controllers.
func delegate(path string) error {
	content, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	for _, controller := range strings.Fields(string(content)) {
		if err := os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("cgroup: controller %s of %s: %w", controller, path, err)
		}
	}
	return nil
}

// joinGroup moves this process into a group, and what it starts from now on.
func joinGroup(group ...string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := os.WriteFile(filepath.Join(h.path(group...), "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	return nil
}

// emptyNodeRoot makes room at the root of a node's cgroups of version 2, where
// processes and controllers exclude each other, by moving this process down.
func emptyNodeRoot() error {
	all, err := hierarchies()
	if err != nil || all[0].dir != "" {
		return err
	}
	if err := os.Mkdir(all[0].path("init"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := joinGroup("init"); err != nil {
		return err
	}
	return delegate(cgroupRoot)
}

// mountGroups mounts every hierarchy below root as this process' cgroup
// namespace shows it.
func mountGroups(root string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	at := filepath.Join(root, cgroupRoot)
	if all[0].dir == "" {
		return mount("cgroup2", at, "cgroup2", 0, "")
	}
	if err := mount("cgroup", at, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, h := range all {
		if err := os.Mkdir(filepath.Join(at, h.dir), 0o755); err != nil {
			return err
		}
		if err := mount("cgroup", filepath.Join(at, h.dir), h.fstype, 0, h.options); err != nil {
			return err
		}
	}
	// cpu and cpuacct, where they are links to the folder of both.
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(cgroupRoot, entry.Name())); err == nil {
			if err := os.Symlink(target, filepath.Join(at, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeGroup removes a cgroup with all below it, from every hierarchy. What
// was killed a moment ago may still be on its way out of it.
func removeGroup(wait time.Duration, group ...string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(wait)
	for _, h := range all {
		for {
			err := removeTree(h.path(group...))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes a cgroup's folders; its files go with them.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
