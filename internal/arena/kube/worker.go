package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/cnibench/cnibench/internal/host"
)

const (
	// endPatience is how long this program on a node may take to end when asked.
	endPatience = 15 * time.Second
	// maxOutput limits the output of this program on a node, bytes.
	maxOutput = 64 << 20
)

// Worker is a pod on one node, in which this program does work that is no measurement, on
// the node or in the pod network.
type Worker struct {
	*endpoint
	end   context.CancelFunc // of every command in the pod
	lease *lease             // of this pod alone; nil in Machines
}

// OnMachine is the result of this program on one node.
type OnMachine struct {
	Node           string // its name in the cluster
	Stdout, Stderr string
	Code           int   // the exit code
	Err            error // why there is no exit code
}

// workers makes the pods, waits until all of them run, and has the Lease notify them.
func (cl *Cluster) workers(ctx context.Context, run string, plans []podPlan, held *lease) ([]*Worker, error) {
	var nodes []*node
	for _, plan := range plans {
		nodes = append(nodes, plan.node)
	}
	if err := cl.settleImage(ctx, run, plans[0].namespace, plans[0].onNode, nodes...); err != nil {
		return nil, err
	}
	for _, plan := range plans {
		if err := cl.makePod(ctx, run, plan); err != nil {
			return nil, err
		}
	}
	made, err := cl.await(ctx, held, plans[0].namespace, nodes, podNames(plans)...)
	if err != nil {
		return nil, err
	}
	var list []*Worker
	for _, plan := range plans {
		w := &Worker{endpoint: made[plan.name]}
		w.name, w.node = plan.node.realName, plan.node
		w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
		list = append(list, w)
	}
	return list, nil
}

// OpenWorker makes a pod in an existing namespace, on the node of that name, and waits
// until it runs. A privileged pod has the node's network and sees the node's processes;
// another pod is in the pod network. Close removes the pod.
func (cl *Cluster) OpenWorker(ctx context.Context, namespace, nodeName string, privileged bool) (*Worker, error) {
	plan := podPlan{
		namespace: namespace, name: "worker-" + rand.String(8), node: &node{name: nodeName, realName: nodeName}, onNode: privileged, tolerateAll: true,
	}
	held, err := cl.holdLease(ctx, namespace, plan.name, namespace)
	if err != nil {
		return nil, err
	}
	list, err := cl.workers(ctx, namespace, []podPlan{plan}, held)
	if err != nil {
		held.stop()
		return nil, errors.Join(err, cl.removeWorker(ctx, namespace, plan.name))
	}
	list[0].lease = held
	return list[0], nil
}

// Run runs this program with those arguments to its end. When ctx ends, the program is
// asked to end, and killed after endPatience. stdin may be nil.
func (w *Worker) Run(ctx context.Context, stdin io.Reader, args ...string) OnMachine {
	result := OnMachine{Node: w.node.realName}
	stdout, stderr := &capped{left: maxOutput}, &capped{left: maxOutput}
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	stopKill := context.AfterFunc(ctx, kill) // until the program runs
	p, err := w.Start(running, host.Command{
		Argv: slices.Concat([]string{w.program}, args), Stdin: stdin, Stdout: stdout, Stderr: stderr, OffMeasuredCPUs: true,
	})
	stopKill()
	if err == nil {
		stop := context.AfterFunc(ctx, func() {
			_ = p.Signal(syscall.SIGTERM) // fails only if the stream fails
			time.AfterFunc(endPatience, kill)
		})
		err = p.Wait()
		stop()
	}
	result.Stdout, result.Stderr, result.Err = stdout.String(), stderr.String(), err
	var exit *host.ExitError
	if errors.As(err, &exit) {
		result.Code, result.Err = exit.Code, nil
	}
	return result
}

// Close ends every command in the pod and removes the pod, also after ctx has ended.
func (w *Worker) Close(ctx context.Context) error {
	w.end()
	w.lease.stop()
	return w.cl.removeWorker(ctx, w.namespace, w.pod)
}

// removeWorker deletes a pod without a grace period, if it exists, and its Lease.
func (cl *Cluster) removeWorker(ctx context.Context, namespace, name string) error {
	ctx = context.WithoutCancel(ctx)
	err := cl.removePod(ctx, namespace, name)
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return errors.Join(err, cl.dropLease(ctx, namespace, name, namespace))
}

// capped is a buffer that refuses more than a number of bytes: a pod can write without
// end.
type capped struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		return 0, fmt.Errorf("more than %d MiB of output", maxOutput>>20)
	}
	return c.Buffer.Write(b)
}
