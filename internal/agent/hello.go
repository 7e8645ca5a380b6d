package agent

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/sysmon"
)

func (s *server) hello(_ context.Context, args helloArgs) (Hello, error) {
	h := Hello{PID: os.Getpid()}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return h, fmt.Errorf("uname: %w", err)
	}
	h.Kernel = unix.ByteSliceToString(name.Release[:])
	// Only Linux has the file, which shows the namespace of the process that reads it.
	if b, err := fs.ReadFile(s.root.Proc, "sys/net/ipv4/tcp_congestion_control"); err == nil {
		h.Congestion = strings.TrimSpace(string(b))
	}
	h.SoftnetDropped = softnetDropped(s.root)
	var err error
	if h.Interfaces, err = interfaces(); err != nil {
		return h, err
	}
	if args.Addr.IsValid() {
		h.MTU, err = mtuOf(args.Addr, h.Interfaces)
	}
	return h, err
}

func interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	list := make([]Interface, 0, len(all))
	for _, in := range all {
		i := Interface{Name: in.Name, MTU: in.MTU, Up: in.Flags&net.FlagUp != 0, Addrs: []netip.Prefix{}}
		addrs, err := in.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", in.Name, err)
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				ip, _ := netip.AddrFromSlice(n.IP)
				bits, _ := n.Mask.Size()
				i.Addrs = append(i.Addrs, netip.PrefixFrom(ip.Unmap(), bits))
			}
		}
		list = append(list, i)
	}
	return list, nil
}

// mtuOf returns the MTU of the interface that holds the address.
func mtuOf(addr netip.Addr, list []Interface) (int, error) {
	var held []string
	for _, i := range list {
		for _, p := range i.Addrs {
			if p.Addr() == addr.Unmap().WithZone("") {
				return i.MTU, nil
			}
			held = append(held, fmt.Sprintf("%s on %s", p, i.Name))
		}
	}
	return 0, fmt.Errorf("no interface holds %s; there are: %s", addr, strings.Join(held, ", "))
}

// softnetDropped returns the packets that the machine's CPUs dropped because their backlog was
// full; 0 where the machine does not say.
func softnetDropped(root sysmon.Root) (n uint64) {
	b, err := fs.ReadFile(root.Proc, "net/softnet_stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			dropped, _ := strconv.ParseUint(fields[1], 16, 32)
			n += dropped
		}
	}
	return n
}
