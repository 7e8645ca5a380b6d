package node

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is about eBPF programs at the roots of control groups and at interfaces (tcx), by
// bpf(2): this program is in pods and has no room for a library.

// cgroupHooks are the attach types of control groups that pod networks use, and tcxHooks
// those of interfaces, by their names in programs' texts.
var (
	cgroupHooks = map[uint32]string{
		unix.BPF_CGROUP_INET_INGRESS: "ingress", unix.BPF_CGROUP_INET_EGRESS: "egress", unix.BPF_CGROUP_INET_SOCK_CREATE: "sock_create",
		unix.BPF_CGROUP_SOCK_OPS: "sock_ops", unix.BPF_CGROUP_INET4_BIND: "bind4", unix.BPF_CGROUP_INET6_BIND: "bind6",
		unix.BPF_CGROUP_INET4_CONNECT: "connect4", unix.BPF_CGROUP_INET6_CONNECT: "connect6",
		unix.BPF_CGROUP_INET4_POST_BIND: "post_bind4", unix.BPF_CGROUP_INET6_POST_BIND: "post_bind6",
		unix.BPF_CGROUP_UDP4_SENDMSG: "sendmsg4", unix.BPF_CGROUP_UDP6_SENDMSG: "sendmsg6",
		unix.BPF_CGROUP_UDP4_RECVMSG: "recvmsg4", unix.BPF_CGROUP_UDP6_RECVMSG: "recvmsg6",
		unix.BPF_CGROUP_INET4_GETPEERNAME: "getpeername4", unix.BPF_CGROUP_INET6_GETPEERNAME: "getpeername6",
		unix.BPF_CGROUP_INET4_GETSOCKNAME: "getsockname4", unix.BPF_CGROUP_INET6_GETSOCKNAME: "getsockname6",
		unix.BPF_CGROUP_INET_SOCK_RELEASE: "sock_release",
	}
	tcxHooks = map[uint32]string{unix.BPF_TCX_INGRESS: "tcx ingress", unix.BPF_TCX_EGRESS: "tcx egress"}
)

// program is an eBPF program at a place.
type program struct {
	name, at string
	id       uint32
	target   uint32 // descriptor of a control group or index of an interface
	hook     uint32
}

func (p program) text() string { return p.name + " at " + p.at }

// eachProgram calls f for every program at the roots of the control groups and at the
// interfaces. A kernel that can't be asked has none.
func eachProgram(roots []string, f func(p program) error) error {
	links, err := listLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := programsAt(uint32(l.Attrs().Index), tcxHooks, " of "+l.Attrs().Name, f); err != nil {
			return err
		}
	}
	seen := map[uint64]bool{} // roots that are mounted twice
	for _, root := range roots {
		dir, err := os.Open(root)
		if err != nil {
			continue // unmounted meanwhile
		}
		var st unix.Stat_t
		if err = unix.Fstat(int(dir.Fd()), &st); err == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			err = programsAt(uint32(dir.Fd()), cgroupHooks, " of the control group", f)
		}
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

func programsAt(target uint32, hooks map[uint32]string, of string, f func(p program) error) error {
	for hook, name := range hooks {
		for _, id := range queryPrograms(target, hook) {
			if err := f(program{programName(id), name + of, id, target, hook}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cgroupRoots are the mount points of the unified hierarchy.
func cgroupRoots() []string {
	var roots []string
	data, _ := os.ReadFile("/proc/thread-self/mountinfo") // without it there are none
	for line := range strings.Lines(string(data)) {
		if point, fstype := mountOf(line); fstype == "cgroup2" {
			roots = append(roots, point)
		}
	}
	return roots
}

func readPrograms(s State) error {
	return eachProgram(cgroupRoots(), func(p program) error {
		s.add("program", p.text())
		return nil
	})
}

// cleanPrograms detaches the programs with such names.
func cleanPrograms(roots, prefixes, keep []string) ([]string, error) {
	var removed []string
	err := eachProgram(roots, func(p program) error {
		if !hasPrefix(p.name, prefixes) || slices.Contains(keep, p.text()) {
			return nil
		}
		if err := p.detach(); err != nil {
			return fmt.Errorf("program %s: %w", p.text(), err)
		}
		removed = append(removed, "program "+p.text())
		return nil
	})
	return removed, err
}

// detach detaches the program by its link, or as it was attached without one.
func (p program) detach() error {
	for id := uint32(0); ; {
		next := struct{ id, next, flags uint32 }{id: id}
		if _, err := bpf(unix.BPF_LINK_GET_NEXT_ID, &next); err != nil {
			break // no more, or a kernel without links
		}
		id = next.next
		get := struct{ id, next, flags uint32 }{id: id}
		fd, err := bpf(unix.BPF_LINK_GET_FD_BY_ID, &get)
		if err != nil {
			continue // gone meanwhile
		}
		var info struct{ kind, id, program, _ uint32 }
		if err = objectInfo(fd, unsafe.Pointer(&info), unsafe.Sizeof(info)); err == nil && info.program == p.id {
			link := struct{ fd uint32 }{uint32(fd)}
			_, err = bpf(unix.BPF_LINK_DETACH, &link)
			_ = unix.Close(fd)
			return err
		}
		_ = unix.Close(fd)
	}
	get := struct{ id, next, flags uint32 }{id: p.id}
	fd, err := bpf(unix.BPF_PROG_GET_FD_BY_ID, &get)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	from := struct {
		target, program, hook, flags, replace, relative uint32
		revision                                        uint64
	}{target: p.target, program: uint32(fd), hook: p.hook}
	_, err = bpf(unix.BPF_PROG_DETACH, &from)
	return err
}

// maxPrograms is the most that a hook holds (BPF_CGROUP_MAX_PROGS, BPF_MPROG_MAX).
const maxPrograms = 64

// queryPrograms returns the ids of the programs at the hook; none where it can't be asked.
func queryPrograms(target, hook uint32) []uint32 {
	var ids [maxPrograms]uint32
	query := struct {
		target, hook, flags, attached uint32
		ids                           unsafe.Pointer
		count, _                      uint32
		more                          [4]uint64
	}{target: target, hook: hook, ids: unsafe.Pointer(&ids), count: maxPrograms}
	if _, err := bpf(unix.BPF_PROG_QUERY, &query); err != nil {
		return nil
	}
	return slices.Clone(ids[:min(query.count, maxPrograms)])
}

// programName returns the name of the program, which the kernel cuts off after 15 letters.
func programName(id uint32) string {
	get := struct{ id, next, flags uint32 }{id: id}
	fd, err := bpf(unix.BPF_PROG_GET_FD_BY_ID, &get)
	if err != nil {
		return fmt.Sprintf("id %d", id)
	}
	defer unix.Close(fd)
	var info struct { // the begin of struct bpf_prog_info
		_    [64]byte
		name [unix.BPF_OBJ_NAME_LEN]byte
	}
	if err := objectInfo(fd, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
		return fmt.Sprintf("id %d", id)
	}
	return unix.ByteSliceToString(info.name[:])
}

func objectInfo(fd int, info unsafe.Pointer, size uintptr) error {
	ask := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(fd), uint32(size), info}
	_, err := bpf(unix.BPF_OBJ_GET_INFO_BY_FD, &ask)
	return err
}

// bpf is bpf(2).
func bpf[T any](command int, attr *T) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}
