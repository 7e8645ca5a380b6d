package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// This file is about runs whose process is killed. A guard, a process of this program in a
// session of its own, waits until that process has ended, and removes what its runs left
// with the same user's rights. Where the machine dies, too, the pods end by themselves, and
// the next run or `cnibench clean` removes the namespace.

// GuardCommand is the command of this program that calls Guard.
const GuardCommand = "guard"

const (
	// guardPatience is how long a guard tries to reach the cluster.
	guardPatience = 5 * time.Minute
	guardPause    = 5 * time.Second
)

// guard is this program's side: it tells the guard of runs that begin and end.
type guard struct {
	argv []string // of the guard; nil for none

	mu sync.Mutex
	to io.Writer // the guard's standard input, which ends with this program
}

// guarded is the first line that a guard gets: the options of the connection.
type guarded struct {
	Kubeconfig, Context string
	RequestTimeout      time.Duration
	Within              []string
}

// begin notes that the run makes objects from now on.
func (g *guard) begin(run string, o *Options) {
	if g.argv == nil || o.Install != nil { // what was installed is removed by its journal
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.to == nil {
		if err := g.start(o); err != nil {
			o.log("if this program is killed, the namespaces of its runs stay until the next run: %v", err)
			g.argv = nil
			return
		}
	}
	g.tell("begin " + run)
}

// end notes that nothing of the run is left.
func (g *guard) end(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell("end " + run)
}

// tell fails only if the guard was killed.
func (g *guard) tell(line string) {
	if g.to != nil {
		_, _ = io.WriteString(g.to, line+"\n")
	}
}

func (g *guard) start(o *Options) error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	p, err := host.StartDetached(host.Command{Argv: g.argv, Stdin: from})
	if err != nil {
		to.Close()
		return err
	}
	go func() { _ = p.Wait() }() // for one that is killed; else it outlives this program
	g.to = to
	return json.NewEncoder(to).Encode(guarded{o.Kubeconfig, o.Context, o.RequestTimeout, o.Within})
}

// Guard reads from r what a process of this program tells of its runs. When r ends, it
// removes what is left of runs that have not ended.
func Guard(ctx context.Context, r io.Reader) error {
	return guardRuns(ctx, r, Connect)
}

func guardRuns(ctx context.Context, r io.Reader, connect func(context.Context, Options) (*Cluster, error)) error {
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		return lines.Err()
	}
	var with guarded
	if err := json.Unmarshal(lines.Bytes(), &with); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	var runs []string
	for lines.Scan() {
		word, run, _ := strings.Cut(lines.Text(), " ")
		runs = slices.DeleteFunc(runs, func(r string) bool { return r == run })
		if word == "begin" {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return lines.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	for {
		cl, err := connect(ctx, Options{Kubeconfig: with.Kubeconfig, Context: with.Context, RequestTimeout: with.RequestTimeout, Within: with.Within})
		if err == nil {
			err = leftovers{cl}.removeRuns(ctx, runs)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(guardPause):
		case <-ctx.Done():
			return err
		}
	}
}

// removeRuns removes what is left of the runs.
func (cl leftovers) removeRuns(ctx context.Context, runs []string) error {
	if len(cl.Options.Within) > 0 {
		var errs []error
		for _, run := range runs {
			errs = append(errs, cl.clearRun(ctx, run))
		}
		return errors.Join(errs...)
	}
	list, err := cl.namespaces(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range list {
		if slices.Contains(runs, n.Labels[labelRun]) {
			names = append(names, n.Name)
		}
	}
	return cl.removeNamespaces(ctx, names...)
}
