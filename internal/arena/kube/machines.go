package kube

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/arena"
)

// Machines are nodes of a cluster on which this program runs as root, through a
// privileged pod on each that exists until Close.
type Machines struct {
	cl    *Cluster
	run   string
	lease *lease
	list  []*Worker
}

// OpenMachines starts a privileged pod on each of the options' nodes; if these name none,
// on each node that works, and Options.Log gets the others. After an error nothing is
// left. Errors: those of New, and *arena.Unsupported without Options.Privileged or if the
// cluster refuses such pods.
func OpenMachines(ctx context.Context, o Options) (*Machines, error) {
	if !o.Privileged {
		return nil, &arena.Unsupported{
			Reason: "a node's settings are read and changed on the node itself, by a privileged pod that is there for as long as that takes and may do there what root may",
			Remedy: "allow such a pod on each node with --privileged, if this cluster is yours; or run cnibench on the nodes by hand",
		}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return cl.machines(ctx)
}

func (cl *Cluster) machines(ctx context.Context) (_ *Machines, err error) {
	if _, err := cl.checkRights(ctx); err != nil {
		return nil, err
	}
	if err := (leftovers{cl}).checkUnused(ctx); err != nil { // settings must not change during a run
		return nil, err
	}
	all, err := cl.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	nodes, broken, err := workingNodes(all, cl.Options.Nodes)
	if err != nil {
		return nil, err
	}
	for _, why := range broken {
		cl.Options.log("left out: node %s", why)
	}
	m := &Machines{cl: cl, run: cl.runName()}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := cl.makeNamespace(ctx, namespaceFor(m.run, m.run, "privileged", nil)); err != nil {
		return nil, err
	}
	if m.lease, err = cl.holdLease(ctx, m.run, leaseName, m.run); err != nil {
		return nil, err
	}
	var plans []podPlan
	for _, at := range nodes {
		plans = append(plans, podPlan{namespace: m.run, name: at.name, node: at, onNode: true})
	}
	m.list, err = cl.workers(ctx, m.run, plans, m.lease)
	return m, explainRefusal(err, "privileged pods", ", or run cnibench on the nodes by hand")
}

// Run runs this program with those arguments on all nodes at the same time, in each
// node's mount namespace, and returns the results. When ctx ends, the programs are asked
// to end, and killed after endPatience.
func (m *Machines) Run(ctx context.Context, args ...string) []OnMachine {
	all := make([]OnMachine, len(m.list))
	var wg sync.WaitGroup
	for i, w := range m.list {
		wg.Go(func() { all[i] = w.Run(ctx, nil, slices.Concat([]string{"agent", "on-node", "--"}, args)...) })
	}
	wg.Wait()
	return all
}

// Close removes the pods and waits until they are gone.
func (m *Machines) Close(ctx context.Context) error {
	for _, w := range m.list {
		w.end()
	}
	m.lease.stop()
	return m.cl.removeNamespaces(ctx, m.run)
}
