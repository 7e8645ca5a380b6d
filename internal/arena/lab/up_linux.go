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
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/ns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/wire"
	"github.com/cnibench/cnibench/internal/wire/ebpf"
	"github.com/cnibench/cnibench/internal/wire/underlay"
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
	gone  bool     // Down was called
	boxes []*ns.NS // every namespace, nodes and pods included
	nodes []*endpoint
	pods  []*endpoint
	count int // pods made so far
	procs sync.WaitGroup
}

// upPatience is how long a contender may take to come up, a CNI plugin that
// waits for something included. Seconds do, but for daemons under an emulated
// kernel on a busy machine.
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
			err = errors.Join(refusedHere(err), n.Down(context.WithoutCancel(ctx)))
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

// refusedHere makes of an eBPF program that this kernel refuses a contender
// that this kernel does not support.
func refusedHere(err error) error {
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
	box, err := n.box("underlay")
	if err != nil {
		return err
	}
	link := underlay.Link{MTU: opt.MTU, LineRate: opt.LineRate, Wire: opt.Offload == OffloadWire}
	if kind == UnderlayVPC {
		f.Router, err = underlay.NewVPC(box, f.Nodes, link)
		return err
	}
	return underlay.Switch(box, f.Nodes, link)
}

// daemon starts a program that is part of the network: its end is the
// network's fault.
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
func (n *labNetwork) box(name string) (*ns.NS, error) {
	box, err := ns.New(name)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.boxes = append(n.boxes, box)
	n.mu.Unlock()
	// Copied from the first namespace otherwise, whatever its owner chose.
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
	n.count++
	name := fmt.Sprintf("%s-pod%d", owner.Name, n.count)
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
		s := server.on(cpus.Server)
		return arena.Pair{Client: client.on(cpus.Client), Server: s, Target: s.addr}
	}
	switch path {
	case arena.PathPod:
		return pair(n.pods[0], n.pods[1]), nil
	case arena.PathHost:
		return pair(n.nodes[0], n.nodes[1]), nil
	case arena.PathSameNode:
		beside, err := n.beside(ctx)
		if err != nil {
			return arena.Pair{}, err
		}
		return pair(n.pods[0], beside), nil
	}
	return arena.Pair{}, fmt.Errorf("path %q has no pair: %w", path, n.lab.HasPath(&contender.Contender{ID: n.id}, path))
}

// beside is a second pod on the first node, made when first asked for.
func (n *labNetwork) beside(ctx context.Context) (*endpoint, error) {
	if len(n.pods) == len(n.nodes) {
		ctx, cancel := context.WithTimeout(ctx, upPatience)
		defer cancel()
		return n.addPod(ctx, 0)
	}
	return n.pods[len(n.nodes)], nil
}

// Down implements arena.Network: it kills what still runs in the network's
// namespaces and lets go of them, with which the kernel takes back links, routes
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
	if !n.gone && n.lab.standing.Add(-1) == 0 {
		reapOrphans()
	}
	n.gone = true
	return errors.Join(errs...)
}

// downPatience is how long a killed process may hang in the kernel.
const downPatience = 5 * time.Second

// reapOrphans takes the exit status of processes whose parents have died and
// which are ours as the init. Nobody else waits for a process while no network
// stands. All of them were killed; one that hangs in the kernel is left after a
// while.
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

// subnet24 is the i-th /24 of the network.
func subnet24(p netip.Prefix, i int) netip.Prefix {
	a := p.Masked().Addr().As4()
	a[2] += byte(i)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

// hostOf is the i-th address of the network, which must have as many.
func hostOf(p netip.Prefix, i int) netip.Addr {
	a := p.Masked().Addr().As4()
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(i))
	return netip.AddrFrom4(a)
}
