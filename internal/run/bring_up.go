package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/mesh/measure"
	"github.com/cnibench/cnibench/internal/unit"
)

// forOne returns the venue of a task that looks at the network of one contender, and completes
// the task before anything is made: contender is the one that was asked for, else the
// cluster's own network or flannel-vxlan; rate is --max-rate, else the arena's limit for such
// tasks, 0 for none. Agents may use all CPUs unless the user gave --cpus.
func (f *Request) forOne(contender *string, rate *unit.BitRate) (venue Venue, err error) {
	kind := f.Kind()
	f.AllCPUs = true
	if max := cmp.Or(f.MaxRate, kind.MaxRate); max != "" {
		if *rate, err = unit.ParseBitRate(max); err != nil {
			return nil, exit.Usage("--max-rate: %w", err)
		}
	}
	if venue, err = f.Venue(); err != nil {
		return nil, err
	}
	catalogue, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, err
	}
	c, err := catalogue.Contender(cmp.Or(*contender, kind.Contender))
	if err != nil {
		return nil, err
	}
	*contender = c.ID
	return venue, nil
}

// upNetwork is a contender's network that is up for a task whose agents do all of the work.
type upNetwork struct {
	*Opened
	Network   arena.Network
	contender *contender.Contender
}

// bringUp brings the contender's network up. The caller takes the network down.
func bringUp(ctx context.Context, venue Venue, id string) (*upNetwork, error) {
	catalogue, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, err
	}
	c, err := catalogue.Contender(id)
	if err != nil {
		return nil, err
	}
	opened, err := venue.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := opened.Arena.Supports(ctx, c); err != nil {
		return nil, err
	}
	network, err := opened.Arena.Up(ctx, c, opened.Arena.Variant(c))
	if err != nil {
		return nil, fmt.Errorf("%s does not come up: %w", c.ID, err)
	}
	return &upNetwork{Opened: opened, Network: network, contender: c}, nil
}

// Ends are the nodes of a network, each with a pod on it, where agents can be started.
type Ends struct {
	measure.Network
	// Now returns the nodes that can be measured now, for tasks that last; nil: always all.
	Now func(ctx context.Context) (measure.Network, error)
	// Announce says in the cluster that something has happened to a node; nil: there is none.
	Announce func(ctx context.Context, node string, warning bool, reason, text string) error
	// Close removes what was made for the agents.
	Close func(ctx context.Context) error
}

// Ends implements Venue: the contender's network comes up for the agents.
func (p *labVenue) Ends(ctx context.Context, id string) (*Ends, error) {
	up, err := bringUp(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return &Ends{Network: measure.Of(up.Network, up.Exe), Close: up.Network.Down}, nil
}

// Ends implements Venue: pods on every node that the request chooses, in the cluster's own
// pod network and, where the cluster allows it, in the nodes' network.
func (k *clusterVenue) Ends(ctx context.Context, id string) (*Ends, error) {
	if id != kube.ThisClusterID {
		return nil, fmt.Errorf("contender %s: every node is measured in the cluster's own pod network alone; leave --contender out", id)
	}
	if k.request.Probes != "" {
		return k.probes(ctx)
	}
	pods, err := kube.OpenPods(ctx, k.Options, kube.Wanted{Host: true, Pod: true, Max: k.request.Most, Some: true})
	if err != nil {
		return nil, KubeError(err)
	}
	e := &Ends{Close: pods.Close, Announce: pods.Announce}
	e.Now = func(ctx context.Context) (measure.Network, error) {
		nodes, err := pods.Fit(ctx)
		return networkOf(nodes, e.Start), err
	}
	if pods.NoHost != nil {
		logInfo("no pod may use the nodes' network, so only the pods' is measured: %v", pods.NoHost)
	}
	e.Network = networkOf(pods.Nodes, pods.Agent)
	e.Absent = pods.Absent
	if len(e.Nodes) < 2 {
		return nil, errors.Join(&arena.Unsupported{Reason: "pods can run on one node only", Remedy: "a mesh needs two nodes at least, and three to blame one"},
			pods.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}

// probes returns the running pods that the request selects, at those nodes that are there now.
func (k *clusterVenue) probes(ctx context.Context) (*Ends, error) {
	probes, err := kube.OpenProbes(ctx, k.Options, k.request.Probes)
	if err != nil {
		return nil, KubeError(err)
	}
	e := &Ends{Close: probes.Close, Announce: probes.Announce}
	e.Now = func(ctx context.Context) (measure.Network, error) {
		nodes, err := probes.Nodes(ctx)
		return networkOf(nodes, probes.Agent), KubeError(err)
	}
	e.Network, err = e.Now(ctx)
	return e, err
}

// networkOf returns the nodes with their pods.
func networkOf(nodes []kube.PodNode, start func(context.Context, arena.Endpoint) (*agent.Client, error)) measure.Network {
	net := measure.Network{Start: start}
	for _, n := range nodes {
		labels := map[string]string{"kernel": n.Info.KernelVersion, "os": n.Info.OSImage, "architecture": n.Info.Architecture, "role": n.Role}
		net.Add(n.RealName, n.Zone, labels, n.Host, n.Pod)
	}
	return net
}
