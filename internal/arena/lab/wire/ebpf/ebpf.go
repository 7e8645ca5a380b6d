//go:build linux

// Package ebpf holds the pieces whose datapath is eBPF programs: those of Cilium and Calico.
// bpf/ holds the programs' sources and objects. Next: cilium.go, calico.go.
package ebpf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

//go:generate bpf/generate.sh cilium.c sock.c calico.c calico_l3.c testdata/refused.c

// RefusedError is an eBPF program that the running kernel's verifier refused.
type RefusedError struct {
	Program string // its name in the C source
	Kernel  string // release
	Log     string // the last lines of the verifier's log
	Err     error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("eBPF program %s: kernel %s refused it: %v; the verifier's last words: %s", e.Program, e.Kernel, e.Err, e.Log)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Remedy returns what the user can do.
func (e *RefusedError) Remedy() string {
	return "run it with another kernel (--arena microvm), and report this kernel and the verifier's words"
}

// verifierLines is the number of lines of the verifier's log that an error shows: the refusal and
// the instructions before it.
const verifierLines = 6

// objectSpec parses a compiled object.
func objectSpec(object []byte) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("eBPF object: %w", err)
	}
	return spec, nil
}

// loadEBPF loads the named programs of an object. It sets the object's constants,
// and the programs use the shared maps in place of the object's own maps of these
// names. Programs, constants and maps that the object lacks are ignored. A constant
// with the name of a map sets the map's size in entries.
func loadEBPF(object []byte, programs []string, constants map[string]any, shared map[string]*ebpf.Map) (*ebpf.Collection, error) {
	spec, err := objectSpec(object)
	if err != nil {
		return nil, err
	}
	for name := range spec.Programs {
		if !slices.Contains(programs, name) {
			delete(spec.Programs, name)
		}
	}
	for name, value := range constants {
		if m, isMap := spec.Maps[name]; isMap {
			m.MaxEntries = value.(uint32)
			continue
		}
		v, known := spec.Variables[name]
		if !known {
			return nil, fmt.Errorf("eBPF object: no constant %s", name)
		}
		if err := v.Set(value); err != nil {
			return nil, fmt.Errorf("eBPF object: constant %s: %w", name, err)
		}
	}
	replace := map[string]*ebpf.Map{}
	for name, m := range shared {
		if _, has := spec.Maps[name]; has {
			replace[name] = m
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace, Cache: btf.NewCache()})
	if err != nil {
		return nil, toRefusedError(err, programs)
	}
	return c, nil
}

// toRefusedError returns a *RefusedError if the verifier refused a program, else err.
func toRefusedError(err error, programs []string) error {
	var verifier *ebpf.VerifierError
	if !errors.As(err, &verifier) {
		return fmt.Errorf("eBPF: %w", err)
	}
	name := strings.Join(programs, ", ")
	for _, p := range programs { // the library's error names the program
		if strings.Contains(err.Error(), "program "+p+":") {
			name = p
		}
	}
	lines := verifier.Log
	var u unix.Utsname
	_ = unix.Uname(&u)
	return &RefusedError{
		Program: name, Kernel: unix.ByteSliceToString(u.Release[:]),
		Log: strings.Join(lines[max(0, len(lines)-verifierLines):], " | "), Err: verifier.Cause,
	}
}

// empty deletes all entries of a map.
func empty(m *ebpf.Map) error {
	var keys [][]byte
	key, err := m.NextKeyBytes(nil)
	for ; key != nil; key, err = m.NextKeyBytes(key) {
		keys = append(keys, key)
	}
	if err != nil {
		return fmt.Errorf("eBPF map: %w", err)
	}
	for _, key := range keys {
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("eBPF map: %w", err)
		}
	}
	return nil
}

// forgetMaps deletes every node's tracked connections: those of the named maps, and those of the
// kernel's connection tracking, if there is one.
func forgetMaps(ctx context.Context, f *wire.Fabric, of func(n *wire.Node) *ebpf.Collection, names ...string) error {
	return f.Parallel(ctx, func(_ context.Context, n *wire.Node) error {
		for _, name := range names {
			if err := empty(of(n).Maps[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return n.NS.Do(func() error {
			if _, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_count"); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return wire.ForgetConnections(n)
		})
	})
}

// classify attaches a program to the ingress (received packets) or egress of an interface by
// clsact, as Cilium 1.15 and Calico 3.27 do.
func classify(h *netlink.Handle, ifindex int, parent uint32, name string, p *ebpf.Program) error {
	qdisc := &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
	if err := h.QdiscAdd(qdisc); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact: %w", err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          p.FD(), Name: name, DirectAction: true,
	}
	if err := h.FilterReplace(filter); err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	return nil
}

// podLink configures the pod's interface: a /32 address, and a default route through a gateway
// that answers ARP itself.
func podLink(pod *wire.Pod, name string, addr, gateway netip.Addr, mtu int) error {
	h, err := pod.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(netip.PrefixFrom(addr, 32))}); err != nil {
		return err
	}
	if err := h.LinkSetUp(link); err != nil {
		return err
	}
	index := link.Attrs().Index
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Dst: wire.IPNet(netip.PrefixFrom(gateway, 32)), Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("route to the gateway %s: %w", gateway, err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gateway.AsSlice()}); err != nil {
		return fmt.Errorf("default route through %s: %w", gateway, err)
	}
	return nil
}
