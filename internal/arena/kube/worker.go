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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/cnibench/cnibench/internal/host"
)

const (
	// endPatience is how long this program on a node may take to end in order.
	endPatience = 15 * time.Second
	// mostOutput is how many bytes of this program's output on a node are kept.
	mostOutput = 64 << 20
)

// Worker is a pod of this program on one node, for work on the node or in the
// pod network that is no measurement.
type Worker struct {
	*endpoint
	end   context.CancelFunc // of every command in the pod
	lease *lease             // of this pod alone; nil in Machines
}

// OnMachine is what this program said on one node.
type OnMachine struct {
	Node           string // as the cluster calls it
	Stdout, Stderr string
	Code           int   // its exit code
	Err            error // what kept it from ending by itself
}

// workers makes the pods, waits until all of them run, and keeps them alive by the
// Lease.
func (cl *Cluster) workers(ctx context.Context, run string, plans []podPlan, held *lease) ([]*Worker, error) {
	var nodes []*node
	for _, plan := range plans {
		nodes = append(nodes, plan.node)
		if err := cl.makePod(ctx, run, plan); err != nil {
			return nil, err
		}
	}
	pods, err := cl.await(ctx, plans[0].namespace, nodes, podNames(plans)...)
	if err != nil {
		return nil, err
	}
	var list []*Worker
	for _, plan := range plans {
		p := pods[plan.name]
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		w := &Worker{end: end, endpoint: &endpoint{
			cl: cl, namespace: p.Namespace, pod: p.Name, uid: string(p.UID), name: plan.node.real, node: plan.node, addrs: podAddrs(p), ctx: life,
		}}
		held.tell(w.endpoint)
		list = append(list, w)
	}
	return list, nil
}

// OpenWorker makes a pod in a namespace that is there, on the node of that name,
// and waits until it runs: a privileged one in the node's network and among its
// processes, else one in the pod network. Close removes it.
func (cl *Cluster) OpenWorker(ctx context.Context, namespace, nodeName string, privileged bool) (*Worker, error) {
	plan := podPlan{
		namespace: namespace, name: "worker-" + rand.String(8), node: &node{name: nodeName, real: nodeName}, onNode: privileged, everywhere: true,
	}
	held, err := cl.hold(ctx, namespace, plan.name, namespace)
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

// Run runs this program with those arguments to its end. When ctx ends, it is
// asked to end, and killed when it does not. stdin may be nil.
func (w *Worker) Run(ctx context.Context, stdin io.Reader, args ...string) OnMachine {
	did := OnMachine{Node: w.node.real}
	stdout, stderr := &capped{left: mostOutput}, &capped{left: mostOutput}
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	giveUp := context.AfterFunc(ctx, kill) // until it runs
	p, err := w.Start(running, host.Command{
		Argv: slices.Concat([]string{w.cl.program}, args), Stdin: stdin, Stdout: stdout, Stderr: stderr, Aside: true,
	})
	giveUp()
	if err == nil {
		stop := context.AfterFunc(ctx, func() {
			_ = p.Signal(syscall.SIGTERM) // where that fails, so does the stream
			time.AfterFunc(endPatience, kill)
		})
		err = p.Wait()
		stop()
	}
	did.Stdout, did.Stderr, did.Err = stdout.String(), stderr.String(), err
	var exit *host.ExitError
	if errors.As(err, &exit) {
		did.Code, did.Err = exit.Code, nil
	}
	return did
}

// Close ends every command in the pod and removes it, though ctx may have ended.
func (w *Worker) Close(ctx context.Context) error {
	w.end()
	w.lease.stop()
	return w.cl.removeWorker(ctx, w.namespace, w.pod)
}

// removeWorker deletes a pod at once, if there is one of that name, and its Lease.
func (cl *Cluster) removeWorker(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	var now int64
	err := cl.do(ctx, "delete pod "+namespace+"/"+name, func(ctx context.Context) error {
		return gone(cl.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	})
	return errors.Join(err, cl.dropLease(ctx, namespace, name, namespace))
}

// capped is a buffer that refuses more than a number of bytes: a pod may write
// without end.
type capped struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		return 0, fmt.Errorf("more than %d MiB of output", mostOutput>>20)
	}
	return c.Buffer.Write(b)
}
