package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/contender"
)

// The usual folders of the Container Network Interface.
const (
	confDir   = "/etc/cni/net.d"
	pluginDir = "/opt/cni/bin"
)

// inspect carries out DoState and DoClean in the node's mount namespace.
func inspect(ctx context.Context, req Request, ans *Answer) error {
	carryOut := func() error {
		if req.Do == DoClean {
			var err error
			if ans.Removed, err = clean(ctx, req); err != nil {
				return err
			}
		}
		var err error
		ans.State, ans.Blind, err = state(ctx, req.Leftovers)
		ans.Uplink = uplink(req.Address)
		ans.Plugins = names(pluginDir)
		ans.KubeProxy = kubeProxy(ctx)
		return err
	}
	if req.InPlace {
		return carryOut()
	}
	return onNode(carryOut)
}

// state reads the state of the node. It leaves out chains of kube-proxy and kubelet, which
// change with the Services. The texts say which parts could not be read.
func state(ctx context.Context, l contender.Leftovers) (State, []string, error) {
	s := State{}
	var blind []string
	for _, read := range []func() error{
		func() error { return readLinks(s) },
		func() error { return readRoutes(s) },
		func() error { return readAddresses(s) },
		func() error { return readFilters(s) },
		func() error { return readPrograms(s) },
		func() error { return readXFRM(s) },
		func() error { return readSets(s) },
		func() error { return readIPVS(s) },
		func() error { return readSettings(s) },
		func() error { return readNft(s) },
		func() error {
			unread, err := readLegacy(ctx, s)
			blind = append(blind, unread...)
			return err
		},
		func() error { return readFiles(s, l) },
		func() error { return readMounts(s, l) },
	} {
		if err := read(); err != nil {
			return nil, nil, err
		}
	}
	return s.sortLists(), blind, nil
}

// ignoreInterrupted returns nil for the error that a change interrupted a dump: its
// results are used, and the next dump shows the rest.
func ignoreInterrupted(err error) error {
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil
	}
	return err
}

// isMissing reports whether err says that the kernel lacks the feature.
func isMissing(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT)
}

// readFiles lists the files in the CNI's folders and the recipe's files.
func readFiles(s State, l contender.Leftovers) error {
	for _, dir := range []string{confDir, pluginDir} {
		for _, name := range names(dir) {
			s.add("file", filepath.Join(dir, name))
		}
	}
	for _, pattern := range l.Files {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		for _, file := range found {
			if !slices.Contains(s["file"], file) {
				s.add("file", file)
			}
		}
	}
	return nil
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the folder does not exist
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// readMounts lists BPF and cgroup2 file systems and the recipe's mount points.
func readMounts(s State, l contender.Leftovers) error {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		point, fstype := mountOf(line)
		if fstype == "bpf" || fstype == "cgroup2" || slices.Contains(l.Mounts, point) {
			s.add("mount", point)
		}
	}
	return nil
}

// mountOf reads a line of mountinfo (proc_pid_mountinfo(5)): the mount point and, after
// the hyphen, the type of the file system.
func mountOf(line string) (point, fstype string) {
	fields := strings.Fields(line)
	hyphen := slices.Index(fields, "-")
	if len(fields) < 5 || hyphen < 0 || hyphen+1 >= len(fields) {
		return "", ""
	}
	return fields[4], fields[hyphen+1]
}

// kubeProxy reports whether kube-proxy listens on its health port (kubernetes
// pkg/cluster/ports/ports.go, ProxyHealthzPort).
func kubeProxy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:10256")
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// uplink returns the name of the interface with the address; "" if there is none.
func uplink(address string) string {
	ip := net.ParseIP(address)
	if ip == nil {
		return ""
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	return ""
}
