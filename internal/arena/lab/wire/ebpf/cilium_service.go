//go:build linux

package ebpf

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/linux"
)

//go:embed bpf/sock.o
var sockObject []byte

// CiliumService is Cilium's load balancer. It works at tc in the pod's own program, or when a
// socket connects.
var CiliumService = wire.Service{
	Name:    "ebpf",
	Summary: "Services in eBPF maps, served when a socket connects or per packet at tc (Cilium)",
	Params:  []string{"socket"},
	Setup: func(_ context.Context, f *wire.Fabric, p wire.Params) (wire.Proxy, error) {
		c, err := ciliumOf(f, "ebpf")
		if err != nil {
			return nil, err
		}
		if p.Bool("socket", false) {
			first := c.nodes[f.Nodes[0]]
			if first == nil {
				return nil, errors.New("service ebpf needs an eBPF transport; give the contender lab.transport ebpf-vxlan or ebpf-routes")
			}
			c.socket, err = atSockets(f, sockObject, map[string]ebpf.AttachType{
				"connect4": ebpf.AttachCGroupInet4Connect, "getpeername4": ebpf.AttachCgroupInet4GetPeername,
				"sendmsg4": ebpf.AttachCGroupUDP4Sendmsg, "recvmsg4": ebpf.AttachCGroupUDP4Recvmsg,
			}, first.shareMaps())
			if err != nil {
				return nil, err
			}
			c.settings["per_packet_lb"] = false
		}
		return &ciliumProxy{c}, nil
	},
}

type ciliumProxy struct{ *cilium }

// Sync implements Proxy. The programs at sockets use the first node's maps. All programs of a
// node use one set of maps.
func (p *ciliumProxy) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return p.nodes[n].services.sync(ctx, table) })
}

// Forget implements Proxy.
func (p *ciliumProxy) Forget(ctx context.Context, f *wire.Fabric) error {
	if p.socket != nil {
		if err := empty(p.socket.Maps["believed"]); err != nil {
			return err
		}
	}
	return forgetMaps(ctx, f, func(n *wire.Node) *ebpf.Collection { return p.nodes[n].Collection }, "ct_tcp", "ct_any")
}

// The structures of bpf/service.h.
type (
	serviceKey struct {
		Addr  [4]byte
		Port  [2]byte
		Slot  uint16
		Proto uint8
		_     [3]byte
	}
	serviceEntry   struct{ Backend, Count, Index uint32 }
	serviceAddress struct {
		Addr [4]byte
		Port [2]byte
		_    [2]byte
	}
)

// serviceMaps holds the maps of bpf/service.h and the entries written to them.
type serviceMaps struct {
	services, backends, reverse *ebpf.Map

	keys    []serviceKey
	numbers []uint32 // of backends
	indexes []uint32 // of Services
	last    uint32   // last number given; no number is used twice
}

// bigPort returns the port in network byte order.
func bigPort(p uint16) (b [2]byte) {
	binary.BigEndian.PutUint16(b[:], p)
	return b
}

func serviceMapsOf(c *ebpf.Collection) serviceMaps {
	return serviceMaps{services: c.Maps["services"], backends: c.Maps["backends"], reverse: c.Maps["reverse"]}
}

var protocols = map[string]uint8{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP}

// sync replaces all Services by those of the table. A Service's backends are written
// first and its own entry last, so that no packet meets an incomplete Service, as
// in Cilium's agent (pkg/maps/lbmap).
func (m *serviceMaps) sync(ctx context.Context, table []wire.ServicePort) error {
	if err := m.clear(); err != nil {
		return err
	}
	for _, s := range table {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.add(s); err != nil {
			return fmt.Errorf("add Service %s: %w", s.Name, err)
		}
	}
	return nil
}

func (m *serviceMaps) add(s wire.ServicePort) error {
	key := serviceKey{Addr: s.ClusterIP.As4(), Port: bigPort(s.Port), Proto: protocols[s.Protocol]}
	if key.Proto == 0 {
		return fmt.Errorf("protocol %q is neither TCP nor UDP", s.Protocol)
	}
	slot := key
	for _, b := range s.Backends {
		m.last++
		if err := m.backends.Put(m.last, serviceAddress{Addr: b.Addr().As4(), Port: bigPort(b.Port())}); err != nil {
			return fmt.Errorf("backend: %w", err)
		}
		m.numbers = append(m.numbers, m.last)
		slot.Slot++
		if err := m.services.Put(slot, serviceEntry{Backend: m.last}); err != nil {
			return fmt.Errorf("slot: %w", err)
		}
		m.keys = append(m.keys, slot)
	}
	m.last++
	if err := m.reverse.Put(m.last, serviceAddress{Addr: key.Addr, Port: key.Port}); err != nil {
		return fmt.Errorf("address for replies: %w", err)
	}
	m.indexes = append(m.indexes, m.last)
	if err := m.services.Put(key, serviceEntry{Count: uint32(len(s.Backends)), Index: m.last}); err != nil {
		return err
	}
	m.keys = append(m.keys, key)
	return nil
}

// clear deletes all Services.
func (m *serviceMaps) clear() error {
	var errs []error
	for _, k := range m.keys {
		errs = append(errs, m.services.Delete(k))
	}
	for _, k := range m.numbers {
		errs = append(errs, m.backends.Delete(k))
	}
	for _, k := range m.indexes {
		errs = append(errs, m.reverse.Delete(k))
	}
	m.keys, m.numbers, m.indexes = nil, nil, nil
	return errors.Join(errs...)
}

// sockets holds programs attached to the control group of the lab's processes. They act on the
// lab's namespaces only. The kernel detaches them when this process ends.
type sockets struct {
	*ebpf.Collection
	links []link.Link
}

// atSockets attaches the named programs of an object. They use the shared maps instead of the
// object's maps of the same names.
func atSockets(f *wire.Fabric, object []byte, programs map[string]ebpf.AttachType, shared map[string]*ebpf.Map) (_ *sockets, err error) {
	s := &sockets{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	names := slices.Sorted(maps.Keys(programs))
	if s.Collection, err = loadEBPF(object, names, nil, shared); err != nil {
		return nil, err
	}
	group, done, err := ownControlGroup(f.Nodes[0].Dir)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, name := range names {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: group, Attach: programs[name], Program: s.Programs[name]})
		if err != nil {
			return nil, fmt.Errorf("eBPF program %s at the control group: %w; run it as root, on a kernel with CONFIG_CGROUP_BPF", name, err)
		}
		s.links = append(s.links, l)
	}
	for _, n := range f.Nodes {
		if err := s.serve(n.NS); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// serve makes the programs act on the sockets of a namespace.
func (s *sockets) serve(box *linux.NetNS) error {
	return box.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		if err != nil {
			return fmt.Errorf("cookie of namespace %s: %w", box.Name, err)
		}
		return s.Maps["namespaces"].Put(cookie, uint32(1))
	})
}

func (s *sockets) close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	if s.Collection != nil {
		s.Collection.Close()
	}
	return errors.Join(errs...)
}

// ownControlGroup mounts control groups v2 in the lab's own mount namespace and returns the
// folder of the group that holds this process and every process of the lab. done unmounts.
func ownControlGroup(dir string) (group string, done func(), err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", nil, fmt.Errorf("control group: %w", err)
	}
	own, found := "", false
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own, found = path, true
		}
	}
	if !found {
		return "", nil, errors.New("control group: this process is in none of version 2; boot with cgroup v2, unified or hybrid")
	}
	at := filepath.Join(dir, "cgroup2")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", nil, err
	}
	if err := unix.Mount("none", at, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return "", nil, fmt.Errorf("control group: mount cgroup2: %w", err)
	}
	return filepath.Join(at, own), func() { _ = unix.Unmount(at, unix.MNT_DETACH) }, nil
}
