package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/host"
)

// endpoint is a pod as a place where commands run.
type endpoint struct {
	cl             *Cluster
	namespace, pod string
	name           string // in the network: "node1", "node1-pod1"
	node           *node
	addrs          []netip.Addr // IPv4 first
	cpus           []int
	ctx            context.Context // ends with the network
	uid            string          // of the pod; a new pod of the same name has another
	program        string          // this program in the pod; equip sets it
	carried        bool            // the image has no program
	carriedBytes   int64           // of the program, to this pod
	containers     []string        // of the pod, with those that the cluster added
}

// Name implements arena.Endpoint.
func (e *endpoint) Name() string { return e.name }

// Node implements arena.Endpoint.
func (e *endpoint) Node() string { return e.node.name }

// Addr implements arena.Endpoint.
func (e *endpoint) Addr() netip.Addr { return e.addrs[0] }

// Dir implements arena.Endpoint: a volume in memory.
func (e *endpoint) Dir() string { return dir }

// CPUs implements arena.Endpoint. No command is bound to a CPU. If two nodes are one
// machine, CPUs returns all its CPUs, so that their time is not counted twice.
func (e *endpoint) CPUs() []int { return e.cpus }

// Start implements host.Runner. While the API server does not answer, it tries again for
// apiPatience. That starts no command twice: a command is killed when its stream breaks.
func (e *endpoint) Start(ctx context.Context, c host.Command) (host.Process, error) {
	self, _ := os.Executable()
	c.Argv = slices.Clone(c.Argv)
	for i, word := range c.Argv { // not only the first word: env may start this program
		if word == self || word == Program {
			c.Argv[i] = e.program
		}
	}
	ctx, stop := e.untilDown(ctx)
	var p host.Process
	err := Retry(ctx, apiPatience, func(ctx context.Context) (err error) {
		p, err = agent.StartExec(ctx, e.cl.Exec(e.namespace, e.pod, container, []string{e.program, "agent", "exec"}), c)
		return err
	}, func(err error) bool {
		return errors.Is(err, agent.ErrStream) && e.checkPod(ctx) == nil
	})
	if err == nil {
		return &command{Process: p, stop: stop}, nil
	}
	defer stop()
	if errors.Is(err, agent.ErrStream) {
		if podErr := e.checkPod(ctx); podErr != nil {
			err = podErr
		}
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return nil, err
}

// untilDown returns a context that ends with ctx or with the network.
func (e *endpoint) untilDown(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// command calls stop, which releases its context, when it has ended.
type command struct {
	host.Process
	stop func()
}

func (c *command) Wait() error {
	defer c.stop()
	return c.Process.Wait()
}

// checkPod returns why the pod does not run; nil if it runs or if the API server does not
// answer.
func (e *endpoint) checkPod(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	p, err := e.cl.Client.CoreV1().Pods(e.namespace).Get(ctx, e.pod, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(p.UID) != e.uid:
		return fmt.Errorf("pod %s on node %s is gone: deleted or evicted; the next round makes it anew", e.pod, e.node)
	case err != nil:
		return nil
	}
	_, err = podRuns(p)
	return err
}
