package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/ebpf"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/underlay"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/result"
)

// The lab's addresses. They exist only inside its namespaces.
var (
	switchNet = netip.MustParsePrefix("10.10.0.0/16")  // nodes .0.x, pods on the uplink .n.x
	vpcNet    = netip.MustParsePrefix("10.20.0.0/16")  // a /24 a node
	podNet    = netip.MustParsePrefix("10.244.0.0/16") // a /24 a node, as flannel's default
)

// labNetwork is one contender that is up.
type labNetwork struct {
	lab    *lab
	id     string // of the contender
	dir    string // below RunDir
	pieces pieces
	fabric *wire.Fabric
	proxy  wire.Proxy // nil where the contender has no Services

	programmed bool // the proxy has Services, or may have some

	mu    sync.Mutex
	down  bool           // Down was called
	boxes []*linux.NetNS // every namespace, nodes and pods included
	nodes []*endpoint
	pods  []*endpoint
	made  int // pods made so far
	procs sync.WaitGroup
}

// upPatience is how long a contender may take to come up. Most take seconds;
// daemons in an emulated guest on a busy machine take minutes.
const upPatience = 3 * time.Minute

// Up implements arena.Arena.
func (l *lab) Up(ctx context.Context, c *contender.Contender, variant string) (_ arena.Network, err error) {
	ctx, cancel := context.WithTimeout(ctx, upPatience)
	defer cancel()
	n := &labNetwork{lab: l, id: c.ID, dir: filepath.Join(RunDir, "cnibench", c.ID+"@"+variant)}
	if n.pieces, err = l.compose(c); err != nil {
		return nil, err
	}
	l.standing.Add(1)
	defer func() {
		if err != nil {
			err = errors.Join(asUnsupported(err), n.Down(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	if err := n.underlay(variant, c); err != nil {
		return nil, err
	}
	if a := n.pieces.attach; a != nil && a.Setup != nil {
		if err := a.Setup(ctx, n.fabric, n.pieces.attachParams); err != nil {
			return nil, err
		}
	}
	for i, t := range n.pieces.transports {
		if err := t.Setup(ctx, n.fabric, n.pieces.params[i]); err != nil {
			return nil, err
		}
	}
	if s := n.pieces.service; s != nil {
		if n.proxy, err = s.Setup(ctx, n.fabric, n.pieces.serviceParams); err != nil {
			return nil, err
		}
	}
	for i := range n.fabric.Nodes {
		if _, err := n.addPod(ctx, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// asUnsupported turns the error of an eBPF program that this kernel refuses into an
// *arena.Unsupported. It returns other errors unchanged.
func asUnsupported(err error) error {
	var refused *ebpf.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	return &arena.Unsupported{Reason: refused.Error(), Remedy: refused.Remedy()}
}

// underlay makes the nodes and joins them.
func (n *labNetwork) underlay(kind string, c *contender.Contender) error {
	opt := &n.lab.opt
	f := &wire.Fabric{MTU: opt.MTU, AskedPodMTU: opt.podMTU(c), Overhead: int(c.Datapath.Overhead), PodNetwork: podNet}
	n.fabric = f
	for i := 0; i < opt.Nodes; i++ {
		box, err := n.box(fmt.Sprintf("node%d", i+1))
		if err != nil {
			return err
		}
		// Nodes forward for their pods, as kubelet's preflight demands.
		if err := box.SetSysctl("net.ipv4.ip_forward", "1"); err != nil {
			return err
		}
		node := &wire.Node{Index: i, Name: box.Name, NS: box, PodCIDR: subnet24(podNet, i)}
		if kind == UnderlayVPC {
			node.Addr = netip.PrefixFrom(hostOf(subnet24(vpcNet, i), 10), 24)
		} else {
			// Nodes are .0.x; each sets a /24 of the segment apart for pods
			// that sit directly on it.
			node.Addr = netip.PrefixFrom(hostOf(switchNet, i+2), switchNet.Bits())
			own := subnet24(switchNet, i+1)
			node.HostRange = [2]netip.Addr{hostOf(own, 10), hostOf(own, 250)}
		}
		f.Nodes = append(f.Nodes, node)
		at := n.endpoint(box, node.Name, node.Addr.Addr())
		node.Run, node.Dir = at, at.Dir()
		node.Daemon = func(c host.Command) (host.Process, error) { return n.daemon(at, c) }
		n.nodes = append(n.nodes, at)
	}
	link := underlay.Link{MTU: opt.MTU, LineRate: opt.LineRate, Wire: opt.Offload == OffloadWire}
	if opt.NICDriver != "" {
		return underlay.NICs(opt.NICDriver, f.Nodes, link)
	}
	box, err := n.box("underlay")
	if err != nil {
		return err
	}
	if kind == UnderlayVPC {
		f.Router, err = underlay.NewVPC(box, f.Nodes, link)
		return err
	}
	return underlay.Switch(box, f.Nodes, link)
}

// daemon starts a program that is part of the network. When the program ends, the
// network has a fault.
func (n *labNetwork) daemon(at *endpoint, c host.Command) (host.Process, error) {
	p, err := at.Start(context.Background(), c)
	if err != nil {
		return nil, err
	}
	go func() {
		err := p.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		n.fabric.Fail(fmt.Errorf("%s on %s has ended: %w", c.Argv[0], at.Name(), err))
	}()
	return p, nil
}

// Fault implements arena.Network: a daemon of the network has ended.
func (n *labNetwork) Fault() error { return n.fabric.Fault() }

// box makes a namespace of the network with the sysctls that all of them get.
func (n *labNetwork) box(name string) (*linux.NetNS, error) {
	box, err := linux.NewNetNS(name)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.boxes = append(n.boxes, box)
	n.mu.Unlock()
	// A new namespace has the setting of the machine's first namespace.
	return box, box.SetSysctl(congestionKey, n.lab.opt.Congestion)
}

// addPod makes a pod on the node and attaches it.
func (n *labNetwork) addPod(ctx context.Context, node int) (*endpoint, error) {
	owner := n.fabric.Nodes[node]
	if n.pieces.attach == nil {
		pod := n.endpoint(owner.NS, owner.Name, owner.Addr.Addr())
		n.pods = append(n.pods, pod)
		return pod, nil
	}
	n.made++
	name := fmt.Sprintf("%s-pod%d", owner.Name, n.made)
	box, err := n.box(name)
	if err != nil {
		return nil, err
	}
	addr, err := n.attach(ctx, owner, box, name)
	if err != nil {
		return nil, err
	}
	for _, other := range n.pods {
		if other.addr == addr {
			return nil, fmt.Errorf("%s and %s both got %s; let every node have its own subnet: \"subnet\": %q", other.Name(), name, addr, usePodCIDR)
		}
	}
	pod := n.endpoint(box, owner.Name, addr)
	n.pods = append(n.pods, pod)
	return pod, nil
}

// Nodes implements arena.Network.
func (n *labNetwork) Nodes() []arena.Endpoint { return arena.Endpoints(n.nodes) }

// Pods implements arena.Network.
func (n *labNetwork) Pods() []arena.Endpoint { return arena.Endpoints(n.pods) }

// Uplink implements arena.Network.
func (n *labNetwork) Uplink() string { return wire.UplinkName }

// Notes implements arena.Network.
func (n *labNetwork) Notes() []result.Reason {
	var notes []result.Reason
	for _, text := range n.fabric.Left {
		notes = append(notes, result.Reason{Code: "left_out", Text: text})
	}
	return notes
}

// Effort implements arena.Network.
func (n *labNetwork) Effort(context.Context) (map[string]float64, error) { return nil, nil }

// Pair implements arena.Network. The client is on the first node, the server
// on the second or, for the same-node path, beside the client.
func (n *labNetwork) Pair(ctx context.Context, path string) (arena.Pair, error) {
	cpus := n.lab.opt.CPUs
	pair := func(client, server *endpoint) arena.Pair {
		return arena.Pair{Client: client.bindTo(cpus.Client), Server: server.bindTo(cpus.Server), Target: server.addr}
	}
	switch path {
	case arena.PathPod:
		return pair(n.pods[0], n.pods[1]), nil
	case arena.PathHost:
		return pair(n.nodes[0], n.nodes[1]), nil
	case arena.PathSameNode:
		neighbour, err := n.neighbour(ctx)
		if err != nil {
			return arena.Pair{}, err
		}
		return pair(n.pods[0], neighbour), nil
	}
	return arena.Pair{}, fmt.Errorf("path %q has no pair: %w", path, n.lab.HasPath(&contender.Contender{ID: n.id}, path))
}

// neighbour returns the second pod of the first node. The first call makes it.
func (n *labNetwork) neighbour(ctx context.Context) (*endpoint, error) {
	if len(n.pods) == len(n.nodes) {
		ctx, cancel := context.WithTimeout(ctx, upPatience)
		defer cancel()
		return n.addPod(ctx, 0)
	}
	return n.pods[len(n.nodes)], nil
}

// Down implements arena.Network: it kills the processes in the network's
// namespaces and closes the namespaces, so that the kernel removes links, routes
// and rules. Other networks of the lab stay as they are.
func (n *labNetwork) Down(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := killInside(n.boxes); err != nil {
		return fmt.Errorf("lab: end processes: %w", err)
	}
	var errs []error
	ended := make(chan struct{})
	go func() {
		n.procs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(downPatience):
		errs = append(errs, fmt.Errorf("lab: a killed process does not end within %v", downPatience))
	}
	if n.fabric != nil {
		errs = append(errs, n.fabric.Close())
	}
	for _, box := range n.boxes {
		errs = append(errs, box.Close())
	}
	n.boxes = nil
	errs = append(errs, os.RemoveAll(n.dir))
	if !n.down && n.lab.standing.Add(-1) == 0 {
		reapOrphans()
	}
	n.down = true
	return errors.Join(errs...)
}

// downPatience is how long a killed process may hang in the kernel.
const downPatience = 5 * time.Second

// reapOrphans collects the exit status of killed processes whose parents have ended:
// this process, the init, is their parent now. It must run while no network is up,
// as it would take the exit status of the network's processes, too. It gives up
// after downPatience: a process may hang in the kernel.
func reapOrphans() {
	for deadline := time.Now().Add(downPatience); time.Now().Before(deadline); {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // none left
			return
		case pid == 0:
			time.Sleep(time.Millisecond)
		}
	}
}

// subnet24 returns the i-th /24 of the network.
func subnet24(p netip.Prefix, i int) netip.Prefix {
	a := p.Masked().Addr().As4()
	a[2] += byte(i)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

// hostOf returns the i-th address of the network.
func hostOf(p netip.Prefix, i int) netip.Addr {
	a := p.Masked().Addr().As4()
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(i))
	return netip.AddrFrom4(a)
}
