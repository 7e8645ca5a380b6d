// Package measure makes the case that package diagnose judges: it takes snapshots of two
// nodes and their pods, measures the paths between them in interleaved slices, and on demand
// changes a setting in half of the slices, which proves a cause. It sees a network only
// through arena.Network and the agents in it. Next: Measure, below, then probes.go for what
// is sent and prove.go for trials.
package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
)

// Options say how to measure.
type Options struct {
	Exe       string       // this program, as the endpoints start it for agents
	MaxRate   unit.BitRate // the most that bulk sends; 0 is no limit
	Cycles    int          // of slices; 0 is 3
	Slice     time.Duration
	UnderLoad bool // measure round trips while bulk runs, too
	// Prove changes settings that would prove causes, and changes them back.
	Prove bool
	// OwnMachine says that nodes are in their machine's own network namespace, and Journal
	// is the folder on them for old values; "" is the endpoint's own folder.
	OwnMachine bool
	Journal    string
	// Machine, if set, starts the agent by which the node's settings are tried: with the
	// rights that takes.
	Machine func(ctx context.Context, node arena.Endpoint) (*agent.Client, error)
	// Name returns what people call an endpoint; nil: as the arena does.
	Name func(endpoint string) string
	// Server is the cluster's DNS by its Service address, and Names are what to look up
	// there; none where there is no DNS.
	Server netip.AddrPort
	Names  []string
	// Progress is told what goes on.
	Progress func(text string)
	Seed     uint64
}

const (
	defaultCycles = 3
	defaultSlice  = 150 * time.Millisecond
	leadIn        = 50 * time.Millisecond
	quietTime     = 500 * time.Millisecond
)

// end is an endpoint with its agent.
type end struct {
	arena.Endpoint
	name   string
	pod    bool
	agent  *agent.Client
	ports  agent.Ports
	echo   netip.AddrPort
	mtu    int
	record *sysmon.Recording
}

func (e *end) at(port uint16) netip.AddrPort { return netip.AddrPortFrom(e.Addr(), port) }

// session is a measurement under way.
type session struct {
	Options
	network  arena.Network
	nodes    [2]*end
	pods     [2]*end
	beside   *end // the second pod of the first node; nil: none
	others   []*end
	hostless *arena.Unsupported // why nobody may be in the nodes' own network; nil: one may
	c        *diagnose.Case
	random   *rand.Rand
	jobs     []*job
}

// Measure measures and returns the case, also an incomplete one beside an error that says
// what ended it.
func Measure(ctx context.Context, network arena.Network, o Options) (c *diagnose.Case, err error) {
	if o.Cycles == 0 {
		o.Cycles = defaultCycles
	}
	if o.Slice == 0 {
		o.Slice = defaultSlice
	}
	s := &session{Options: o, network: network, random: rand.New(rand.NewPCG(o.Seed, o.Seed)),
		c: &diagnose.Case{Schema: diagnose.CaseSchema, MaxRate: float64(o.MaxRate)}}
	defer s.close()
	if err := s.find(ctx); err != nil {
		return s.c, err
	}
	return s.c, s.measure(ctx)
}

// find starts the agents.
func (s *session) find(ctx context.Context) error {
	s.Progress("agents")
	pair, err := s.network.Pair(ctx, arena.PathPod)
	if err != nil {
		return err
	}
	for i, e := range []arena.Endpoint{pair.Client, pair.Server} {
		s.pods[i] = &end{Endpoint: e, pod: true}
		for _, n := range s.network.Nodes() {
			if n.Name() == e.Node() {
				s.nodes[i] = &end{Endpoint: n}
			}
		}
		if s.nodes[i] == nil {
			return fmt.Errorf("%s is on %s, which is no node of the network", e.Name(), e.Node())
		}
	}
	if s.nodes[0].Name() == s.nodes[1].Name() {
		return &arena.Unsupported{Reason: "both pods are on one node", Remedy: "diagnose needs two nodes: --nodes A,B"}
	}
	if near, err := s.network.Pair(ctx, arena.PathSameNode); err == nil {
		s.beside = &end{Endpoint: near.Server, pod: true}
	} else if arena.AsUnsupported(err) == nil {
		return err
	}
	if _, err := s.network.Pair(ctx, arena.PathHost); err != nil { // what passes for a node is a pod
		if s.hostless = arena.AsUnsupported(err); s.hostless == nil {
			return err
		}
		s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: "host-too", Why: s.hostless.Reason, Remedy: s.hostless.Remedy})
	}
	for _, n := range s.network.Nodes() { // compared, not measured
		if n.Name() != s.nodes[0].Name() && n.Name() != s.nodes[1].Name() {
			s.others = append(s.others, &end{Endpoint: n})
		}
	}
	var group errgroup.Group
	for _, e := range s.all() {
		e.name = e.Name()
		if s.Name != nil {
			e.name = s.Name(e.Name())
		}
		group.Go(func() error { return s.start(ctx, e) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.c.Ends, s.c.Pods = []string{s.nodes[0].name, s.nodes[1].name}, []string{s.pods[0].name, s.pods[1].name}
	return nil
}

func (s *session) all() []*end {
	list := append([]*end{s.nodes[0], s.nodes[1], s.pods[0], s.pods[1]}, s.others...)
	if s.beside != nil {
		list = append(list, s.beside)
	}
	return list
}

// watchedEnds are the endpoints whose counters are read at the borders of slices.
func (s *session) watchedEnds() []*end { return []*end{s.nodes[0], s.nodes[1], s.pods[0], s.pods[1]} }

func (s *session) start(ctx context.Context, e *end) (err error) {
	scope := sysmon.ScopeNode
	if e.pod {
		scope = sysmon.ScopePod
	}
	if e.agent, err = agent.Start(ctx, e, s.Exe, map[string]string{"node": e.Node(), "endpoint": e.Name()}, scope); err != nil {
		return err
	}
	hello, err := e.agent.Hello(ctx, e.Addr())
	if err != nil {
		return err
	}
	e.mtu = hello.MTU
	if e.ports, err = e.agent.ServeTraffic(ctx, e.Addr()); err != nil {
		return err
	}
	port, err := e.agent.Echo(ctx, e.Addr())
	e.echo = e.at(port)
	return err
}

func (s *session) close() {
	for _, e := range s.all() {
		if e != nil && e.agent != nil {
			_ = e.agent.Close() // what does not end by itself is killed with the endpoint
		}
	}
}

// settle takes back what a killed trial left on the nodes, before anything is looked at.
func (s *session) settle(ctx context.Context) error {
	for _, e := range s.nodes {
		by, err := s.Machine(ctx, e.Endpoint)
		if err != nil {
			return err
		}
		n, err := by.Settle(ctx, agent.Settle{Journal: s.journal(e)})
		if err = errors.Join(err, by.Close()); err != nil {
			return fmt.Errorf("%s: what an earlier trial left: %w", e.name, err)
		}
		if n > 0 {
			s.Progress(fmt.Sprintf("%s: %d values that a killed trial left were set back", e.name, n))
		}
	}
	return nil
}

func (s *session) measure(ctx context.Context) error {
	if s.Prove && s.Machine != nil {
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	s.Progress("snapshots")
	if err := s.snapshots(ctx, false); err != nil {
		return err
	}
	if err := s.sizes(ctx); err != nil {
		return err
	}
	s.tell("size")
	for _, e := range s.watchedEnds() {
		if err := e.agent.Record(ctx); err != nil {
			return err
		}
	}
	if err := s.plan(ctx); err != nil {
		return err
	}
	for cycle := range s.Cycles {
		s.Progress(fmt.Sprintf("slices of %d paths, cycle %d of %d", len(s.c.Paths)-1, cycle+1, s.Cycles))
		s.random.Shuffle(len(s.jobs), func(i, k int) { s.jobs[i], s.jobs[k] = s.jobs[k], s.jobs[i] })
		for _, j := range s.jobs {
			if err := s.slice(ctx, j); err != nil {
				return err
			}
		}
	}
	for _, e := range s.watchedEnds() {
		var err error
		if e.record, err = e.agent.Stop(ctx); err != nil {
			return err
		}
	}
	s.gather()
	if err := s.snapshots(ctx, true); err != nil {
		return err
	}
	if err := s.lookups(ctx); err != nil {
		return err
	}
	if s.Prove {
		return s.prove(ctx)
	}
	return nil
}

// tell says a line of doctor's as soon as it is known.
func (s *session) tell(what string) {
	for _, line := range diagnose.Doctor(s.c) {
		if line.What == what {
			s.Progress(what + ": " + line.Text)
		}
	}
}

// snapshots takes a snapshot of every endpoint; after the slices only what has counters.
func (s *session) snapshots(ctx context.Context, after bool) error {
	list := s.all()
	got := make([]diagnose.Snapshot, len(list))
	var group errgroup.Group
	for i, e := range list {
		if e == s.beside {
			continue
		}
		group.Go(func() (err error) {
			got[i], err = e.agent.Snapshot(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, e := range list {
		switch {
		case e == s.beside:
		case after:
			for k := range s.c.Snapshots {
				if old := &s.c.Snapshots[k]; old.Endpoint == e.name {
					old.After = got[i].Qdiscs
					old.ConntrackCount = max(old.ConntrackCount, got[i].ConntrackCount)
				}
			}
		default:
			got[i].Endpoint, got[i].Pod = e.name, e.pod
			got[i].Node = e.name
			if e.pod {
				got[i].Node = s.nodeOf(e).name
			}
			if s.c.Kernel == "" {
				s.c.Kernel = got[i].Kernel
			}
			s.c.Snapshots = append(s.c.Snapshots, got[i])
		}
	}
	return nil
}

func (s *session) nodeOf(e *end) *end {
	if e.Node() == s.nodes[1].Name() {
		return s.nodes[1]
	}
	return s.nodes[0]
}

// marks reads the counters of all watched endpoints now, and returns the times by their
// own clocks.
func (s *session) marks(ctx context.Context) (times [4]time.Time, err error) {
	var group errgroup.Group
	for i, e := range s.watchedEnds() {
		group.Go(func() (err error) {
			times[i], err = e.agent.Mark(ctx)
			return err
		})
	}
	return times, group.Wait()
}

// sizes finds the largest packets that cross whole.
func (s *session) sizes(ctx context.Context) error {
	s.Progress("packet sizes")
	var unseen sync.Once
	for _, kind := range []string{diagnose.Host, diagnose.PodPod} {
		ends := s.nodes
		if kind == diagnose.PodPod {
			ends = s.pods
		} else if s.hostless != nil {
			continue
		}
		for _, back := range []bool{false, true} {
			from, to := ends[0], ends[1]
			if back {
				from, to = to, from
			}
			watch, device := s.nodeOf(from).agent, s.uplink(s.nodeOf(from))
			if err := watch.Sniff(ctx, agent.Sniff{Device: device}); err != nil {
				why := err
				unseen.Do(func() {
					s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: "mtu-exceeds", Why: fmt.Sprintf("whether the uplink cuts packets up: %v", why), Remedy: "--privileged"})
				})
				watch = nil
			}
			crosses := func(timeout time.Duration) func(int) (bool, error) {
				return func(size int) (bool, error) {
					return from.agent.Crosses(ctx, watch, agent.SizeProbe{Target: to.echo, Size: size, Timeout: timeout})
				}
			}
			whole, err := agent.LargestWhole(minPacket, from.mtu, crosses(0), crosses(time.Second))
			if watch != nil {
				_, stopErr := watch.StopSniffing(ctx)
				err = errors.Join(err, stopErr)
			}
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: "mtu-exceeds", Why: fmt.Sprintf("packet sizes from %s: %v", from.name, err)})
				continue
			}
			if whole > 0 { // else nothing crosses, which the other probes show
				s.path(kind, back, from, to).Probes[diagnose.Size] = diagnose.Probe{Figures: map[string]float64{diagnose.Whole: float64(whole), diagnose.MTU: float64(from.mtu)}}
			}
		}
	}
	return nil
}

// minPacket is what every IPv4 host takes (RFC 791).
const minPacket = 576

// uplink returns the node's device that holds its address.
func (s *session) uplink(n *end) string {
	for _, snap := range s.c.Snapshots {
		if snap.Endpoint != n.name {
			continue
		}
		for _, d := range snap.Devices {
			for _, a := range d.Addrs {
				if p, err := netip.ParsePrefix(a); err == nil && p.Addr() == n.Addr() {
					return d.Name
				}
			}
		}
	}
	return s.network.Uplink()
}

// path returns the path of the case, made when first asked for.
func (s *session) path(kind string, back bool, from, to *end) *diagnose.Path {
	for i := range s.c.Paths {
		if p := &s.c.Paths[i]; p.Kind == kind && p.Back == back {
			return p
		}
	}
	p := diagnose.Path{Kind: kind, Back: back, Probes: map[string]diagnose.Probe{}}
	if from != nil {
		p.From = from.name
	}
	if to != nil {
		p.To = to.name
	}
	s.c.Paths = append(s.c.Paths, p)
	return &s.c.Paths[len(s.c.Paths)-1]
}

// lookups asks the cluster's DNS.
func (s *session) lookups(ctx context.Context) error {
	if len(s.Names) == 0 {
		return nil
	}
	if !s.Server.IsValid() && !s.hasClusterDNS() {
		s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: "dns-slow", Why: "the pods' resolv.conf names no DNS of a cluster"})
		return nil
	}
	s.Progress("DNS")
	for _, name := range s.Names {
		got, err := s.pods[0].agent.Lookup(ctx, agent.Lookups{Name: name, Count: 20, Server: s.Server})
		if err != nil {
			return err
		}
		p := s.path(diagnose.DNS, false, s.pods[0], nil)
		p.To = name
		p.Probes[diagnose.Lookup] = diagnose.Probe{Seconds: 1, Figures: map[string]float64{
			diagnose.P50: got.P50, diagnose.MaxTime: got.Max, diagnose.Late: got.Late, diagnose.Failed: got.Failed, diagnose.Queries: got.Queries}}
	}
	return nil
}

// hasClusterDNS says that the first pod's resolver is that of a cluster: it searches the
// domain of Services.
func (s *session) hasClusterDNS() bool {
	for _, snap := range s.c.Snapshots {
		if snap.Endpoint == s.pods[0].name && snap.Resolver != nil {
			return slices.ContainsFunc(snap.Resolver.Search, func(domain string) bool { return strings.HasPrefix(domain, "svc.") })
		}
	}
	return false
}

// journal returns the folder of the journal at the endpoint.
func (s *session) journal(e *end) string {
	if s.Journal != "" && !e.pod {
		return s.Journal
	}
	return filepath.Join(e.Dir(), "tune")
}
