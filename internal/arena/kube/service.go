package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

const (
	// syncPatience is how long making or removing thousands of Services may take.
	syncPatience = 15 * time.Minute
	// collectTimeout limits one request to remove all EndpointSlices. The API server itself
	// ends such a request after a minute.
	collectTimeout = time.Minute
	// maxRequests is how many requests for Services are made at the same time.
	maxRequests = 50
	// otherPort is the port of the other Services.
	otherPort = 80
	// serverName is the name of the measured Service; the others are numbered.
	serverName = "server"
)

var listAll = metav1.ListOptions{}

// Service implements arena.Network. It makes the other Services first and the measured
// Service last. The measured Service has one more port with an echo behind it: took ends
// when that echo answers every pod. Services have no selectors, and Service makes their
// EndpointSlices itself: took must not include the time of a controller that makes them.
func (n *network) Service(ctx context.Context, ports []arena.Port, others int) (p arena.Pair, took time.Duration, err error) {
	if err := n.arena.HasPath(n.contender, arena.PathService); err != nil {
		return p, 0, err
	}
	path := arena.PathPod
	if len(n.arena.list) == 1 {
		path = arena.PathSameNode
	}
	if p, err = n.Pair(ctx, path); err != nil {
		return p, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if err := n.Reset(ctx); err != nil {
		return p, 0, err
	}
	watch, err := n.watchers(ctx, ports)
	defer watch.close()
	if err != nil {
		return p, 0, err
	}
	backends := n.backends(ports)
	n.services = []string{serverName}
	for i := range others {
		n.services = append(n.services, otherName(i))
	}
	begin := time.Now()
	if err := n.makeOthers(ctx, others); err != nil {
		return p, 0, err
	}
	measured, err := n.makeService(ctx, serverName, n.kind(), append(slices.Clone(backends), backend{
		protocol: arena.TCP, port: watch.echo.Port(), at: watch.echo, node: n.server().node.realName,
	}))
	if err != nil {
		return p, 0, err
	}
	probe := watch.echo.Port()
	switch n.kind() {
	case ClusterIP:
		if p.Target, err = netip.ParseAddr(measured.Spec.ClusterIP); err != nil {
			return p, 0, fmt.Errorf("the Service got no address: %w", err)
		}
	case NodePort:
		p.Target, p.Ports = n.server().node.addr, map[uint16]uint16{}
		for _, x := range measured.Spec.Ports {
			p.Ports[uint16(x.Port)] = uint16(x.NodePort)
		}
		probe = p.Ports[probe]
	}
	if err := watch.await(ctx, netip.AddrPortFrom(p.Target, probe)); err != nil {
		return p, 0, fmt.Errorf("%d Services: %w", others+1, err)
	}
	return p, time.Since(begin), nil
}

// kind returns how Services are reached.
func (n *network) kind() string {
	if n.arena.opt.Service == "" {
		return ClusterIP
	}
	return n.arena.opt.Service
}

// backends returns the servers behind the ports.
func (n *network) backends(ports []arena.Port) []backend {
	var list []backend
	for _, port := range ports {
		var server arena.Endpoint = n.server()
		if port.Server != nil {
			server = port.Server
		}
		at := slices.IndexFunc(n.arena.list, func(x *node) bool { return x.name == server.Node() })
		list = append(list, backend{protocol: port.Protocol, port: port.Number, at: netip.AddrPortFrom(server.Addr(), port.Number), node: n.arena.list[at].realName})
	}
	return list
}

// makeOthers makes the other Services. Each has a server port of its own: in a cluster no
// two Services have the same endpoints.
func (n *network) makeOthers(ctx context.Context, others int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	server := n.server()
	for i := range others {
		group.Go(func() error {
			at := netip.AddrPortFrom(server.Addr(), uint16(1+i%math.MaxUint16))
			_, err := n.makeService(ctx, otherName(i), ClusterIP, []backend{{protocol: arena.TCP, port: otherPort, at: at, node: server.node.realName}})
			return err
		})
	}
	return group.Wait()
}

func otherName(i int) string { return fmt.Sprintf("other-%d", i+1) }

// makeService makes a Service with its EndpointSlices.
func (n *network) makeService(ctx context.Context, name, kind string, backends []backend) (*corev1.Service, error) {
	service, slices := serviceFor(n.run, n.namespace, name, kind, backends)
	made, err := ask(ctx, n.cl, "make the Service "+name, func(ctx context.Context) (*corev1.Service, error) {
		made, err := n.cl.Client.CoreV1().Services(n.namespace).Create(ctx, service, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return n.cl.Client.CoreV1().Services(n.namespace).Get(ctx, name, metav1.GetOptions{})
		}
		return made, err
	})
	if err != nil {
		return nil, err
	}
	for _, slice := range slices {
		err := n.cl.do(ctx, "make the EndpointSlice "+slice.Name, func(ctx context.Context) error {
			_, err := n.cl.Client.DiscoveryV1().EndpointSlices(n.namespace).Create(ctx, slice, metav1.CreateOptions{})
			return ignoreExists(err)
		})
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// Reset implements arena.Network. It leaves the nodes' connection tracking alone, as all
// pods of the nodes share it.
func (n *network) Reset(ctx context.Context) error {
	if len(n.services) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	for _, name := range n.services {
		group.Go(func() error {
			return n.cl.do(groupCtx, "remove the Service "+name, func(ctx context.Context) error {
				return ignoreNotFound(n.cl.Client.CoreV1().Services(n.namespace).Delete(ctx, name, metav1.DeleteOptions{}))
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// Of thousands of slices, one request may remove only a part in time.
	err := Retry(ctx, syncPatience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, collectTimeout)
		defer cancel()
		selector := metav1.ListOptions{LabelSelector: labelRun + "=" + n.run}
		return n.cl.Client.DiscoveryV1().EndpointSlices(n.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector)
	}, transient)
	if err != nil {
		return fmt.Errorf("remove EndpointSlices: %w", err)
	}
	n.services = nil
	return nil
}

// watchers are agents in every pod, which wait until a Service answers.
type watchers struct {
	server string         // the name of the server's pod
	echo   netip.AddrPort // an echo in the server's pod
	agents map[string]*agent.Client
}

// watchers starts the agents and the echo, whose port is none of the Service's ports.
func (n *network) watchers(ctx context.Context, ports []arena.Port) (*watchers, error) {
	w := &watchers{server: n.server().name, agents: map[string]*agent.Client{}}
	started := make([]*agent.Client, len(n.pods))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, e := range n.pods {
		group.Go(func() (err error) {
			started[i], err = startAgent(context.WithoutCancel(groupCtx), e)
			return err
		})
	}
	err := group.Wait()
	for i, a := range started {
		if a != nil {
			w.agents[n.pods[i].name] = a
		}
	}
	if err != nil {
		return w, err
	}
	server := n.server()
	for {
		port, err := w.agents[w.server].Echo(ctx, server.Addr())
		if err != nil {
			return w, err
		}
		if !slices.ContainsFunc(ports, func(p arena.Port) bool { return p.Number == port }) {
			w.echo = netip.AddrPortFrom(server.Addr(), port)
			return w, nil
		}
	}
}

// await waits until the target answers every pod except the server's: not every datapath
// lets a pod reach itself through a Service.
func (w *watchers) await(ctx context.Context, target netip.AddrPort) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range slices.Sorted(maps.Keys(w.agents)) {
		if name == w.server && len(w.agents) > 1 {
			continue
		}
		a := w.agents[name]
		group.Go(func() error {
			for timeout := 100 * time.Millisecond; ; timeout = min(timeout+10*time.Millisecond, time.Second) {
				got, err := a.Probe(ctx, agent.Probe{Target: target, Protocol: "tcp", Timeout: timeout})
				switch {
				case err != nil && ctx.Err() == nil:
					return err
				case ctx.Err() != nil:
					return fmt.Errorf("from %s the Service at %s does not answer: %w", name, target, errors.Join(got.Err(), context.Cause(ctx)))
				case got.TCP.Kind == agent.OK:
					return nil
				}
				if got.TCP.Kind != agent.TimedOut { // the answer came at once
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	return group.Wait()
}

func (w *watchers) close() {
	for _, a := range w.agents {
		closeAgent(a)
	}
}
