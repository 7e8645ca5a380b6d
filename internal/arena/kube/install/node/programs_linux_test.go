package node

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/linux"
)

// Programs at an interface (tcx) and at a control group, with a link and without one, are
// seen, and removed by their names; so is a fallback device's address.
func TestPrograms(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace and eBPF: sudo go test ./internal/arena/kube/install/node")
	}
	space, err := linux.NewNetNS("programs")
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	if err := space.Do(func() error { return attachAndClean(t) }); err != nil {
		t.Fatal(err)
	}
}

func attachAndClean(t *testing.T) error {
	for _, name := range []string{"tunl0", "stays"} {
		if err := addLink(name); err != nil {
			return err
		}
	}
	tunnel, err := netlink.LinkByName("tunl0")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(tunnel, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, 8, 7).To4(), Mask: net.CIDRMask(32, 32)}}); err != nil {
		return err
	}
	device, err := net.InterfaceByName("stays")
	if err != nil {
		return err
	}
	// A control group of the test's own stands for the root.
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "cgroup2", 0, ""); err != nil {
		t.Logf("no control groups of version 2 here: %v", err)
		mount = ""
	}
	var roots []string
	if mount != "" {
		defer func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }()
		group := filepath.Join(mount, filepath.Base(t.TempDir())+"-programs-test")
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		defer os.Remove(group)
		roots = []string{group, group} // as one that is mounted twice
	}

	load := func(name string, kind ebpf.ProgramType, hook ebpf.AttachType) *ebpf.Program {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, AttachType: hook, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
		if err != nil {
			t.Skipf("this kernel has no %s: %v", kind, err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	var want []string
	for _, name := range []string{"xyz_in", "theirs_in"} {
		l, err := link.AttachTCX(link.TCXOptions{Interface: device.Index, Attach: ebpf.AttachTCXIngress, Program: load(name, ebpf.SchedCLS, ebpf.AttachTCXIngress)})
		if errors.Is(err, ebpf.ErrNotSupported) {
			t.Skipf("this kernel has no tcx: %v", err)
		}
		if err != nil {
			return err
		}
		defer l.Close()
		want = append(want, name+" at tcx ingress of stays")
	}
	if roots != nil {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: roots[0], Attach: ebpf.AttachCGroupInet4Connect, Program: load("xyz_connect", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect)})
		if err != nil {
			return err
		}
		defer l.Close()
		group, err := os.Open(roots[0])
		if err != nil {
			return err
		}
		defer group.Close()
		for _, name := range []string{"xyz_egress", "theirs_egress"} {
			if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(group.Fd()), Program: load(name, ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress),
				Attach: ebpf.AttachCGroupInetEgress, Flags: unix.BPF_F_ALLOW_MULTI}); err != nil {
				return err
			}
			want = append(want, name+" at egress of the control group")
		}
		want = append(want, "xyz_connect at connect4 of the control group")
	}
	seen := func() (list []string) {
		if err := eachProgram(roots, func(p program) error { list = append(list, p.text()); return nil }); err != nil {
			t.Error(err)
		}
		slices.Sort(list)
		return list
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, seen()); diff != "" {
		t.Errorf("attached (-want +got)\n%s", diff)
	}
	kept := want[slices.IndexFunc(want, func(s string) bool { return s[:3] == "xyz" })]
	for _, keep := range [][]string{{kept}, nil} {
		if _, err := cleanPrograms(roots, []string{"xyz_"}, keep); err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[:3] == "xyz" && !slices.Contains(keep, s) })
		if diff := cmp.Diff(left, seen()); diff != "" {
			t.Errorf("left (-want +got)\n%s", diff)
		}
	}

	s := State{}
	if err := readAddresses(s); err != nil {
		return err
	}
	if diff := cmp.Diff([]string{"10.9.8.7/32 at tunl0"}, s["address"]); diff != "" {
		t.Error(diff)
	}
	for _, keep := range [][]string{s["address"], nil} {
		removed, err := cleanAddresses([]string{"tunl0", "stays"}, keep)
		if err != nil || len(removed) != 1-len(keep) {
			t.Errorf("%v, %v", removed, err)
		}
	}
	removed, err := cleanLinks([]string{"tunl0"}, nil)
	if len(removed) > 0 {
		t.Errorf("%v was removed", removed)
	}
	return err
}
