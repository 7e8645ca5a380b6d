package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/measure"
	"github.com/cnibench/cnibench/internal/mesh/watch"
	"github.com/cnibench/cnibench/internal/text"
)

// Watching is what `cnibench mesh --watch` asks for.
type Watching struct {
	Every     time.Duration
	Bandwidth bool
	Listen    string // address of /metrics; "": none
	JSON      bool   // events as JSON, a line each
	Rounds    int    // 0: until the user ends it
}

const (
	leastEvery = 5 * time.Second
	mostEvery  = 20 * time.Minute
)

// check returns wrong usage. A port alone is one of loopback.
func (w *Watching) check(f *Request) error {
	switch {
	case w.Every < leastEvery || w.Every > mostEvery:
		return exit.Usage("--every %v: want %v to %v", w.Every, leastEvery, mostEvery)
	case f.Kind().Guest:
		return exit.Usage("--watch: a lab or a cluster is watched; leave --arena %s out", f.Arena)
	case f.Probes != "" && !f.Kind().Cluster:
		return exit.Usage("--probe-pods: pods are in a cluster; add --arena %s, or leave it out", Kube)
	case f.Probes != "" && len(f.Cluster.Within) != 1:
		return exit.Usage("--probe-pods: say in which namespace the pods are, with --namespace NAME")
	case f.Resume != "" || f.Given["out"]:
		return exit.Usage("--watch: writes no run directory; leave --resume and --out out")
	case w.Listen == "":
		return nil
	}
	if !strings.Contains(w.Listen, ":") {
		w.Listen = "127.0.0.1:" + w.Listen
	}
	if _, _, err := net.SplitHostPort(w.Listen); err != nil {
		return exit.Usage("--metrics-listen %s: want HOST:PORT, or PORT for 127.0.0.1:PORT: %v", w.Listen, err)
	}
	return nil
}

// Watch watches the mesh until ctx ends, and writes an event's line to out for each place that
// turns slow or recovers.
func Watch(ctx context.Context, f *Request, task MeshTask, out *os.File) error {
	venue, err := f.prepareMesh(&task)
	if err != nil {
		return err
	}
	files := []*os.File{out}
	if task.Watch.Listen != "" {
		// The socket is made here: a lab has a network of its own.
		l, err := net.Listen("tcp", task.Watch.Listen)
		if err != nil {
			return fmt.Errorf("--metrics-listen: %w", err)
		}
		file, err := l.(*net.TCPListener).File()
		if err = errors.Join(err, l.Close()); err != nil {
			return err
		}
		defer file.Close()
		files = append(files, file)
		logInfo("metrics: http://%s/metrics", l.Addr())
	}
	_, err = WatchVerb().InWith(ctx, venue, task, files...)
	return err
}

// WatchVerb watches a mesh.
func WatchVerb() Verb[MeshTask, struct{}] {
	return Verb[MeshTask, struct{}]{Name: "watch", Do: watchMesh}
}

func watchMesh(ctx context.Context, in *Inside, task MeshTask) (_ struct{}, err error) {
	ends, err := in.Venue.Ends(ctx, task.Contender)
	if err != nil {
		return struct{}{}, err
	}
	defer func() { err = errors.Join(err, ends.Close(context.WithoutCancel(ctx))) }()
	o := watch.Options{
		Every: task.Watch.Every, Bandwidth: task.Watch.Bandwidth, Seed: task.Seed, Rounds: task.Watch.Rounds,
		Limits: meshPlan(ends.Nodes, in.Venue.Traits(), task).Limits,
		Log:    func(text string) { logInfo("%s", text) },
		Event:  func(e watch.Event) { publish(ctx, ends, in.Files[0], task.Watch.JSON, e) },
	}
	said := ""
	o.Plan = func(p *mesh.Plan) {
		if text := strings.TrimSpace(p.String()); text != said {
			said = text
			for line := range strings.Lines(text) {
				logInfo("%s", strings.TrimSpace(line))
			}
		}
	}
	if len(in.Files) > 1 {
		o.Metrics = watch.NewMetrics()
		l, err := net.FileListener(in.Files[1])
		if err != nil {
			return struct{}{}, err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", o.Metrics)
		srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute}
		go func() { _ = srv.Serve(l) }() // it ends with Close
		defer func() { _ = srv.Close() }()
	}
	now := ends.Now
	if now == nil {
		now = func(context.Context) (measure.Network, error) { return ends.Network, nil }
	}
	return struct{}{}, watch.Run(ctx, now, o)
}

// publish writes the event, and announces it in the cluster.
func publish(ctx context.Context, ends *Ends, out *os.File, asJSON bool, e watch.Event) {
	line := text.SafeLine(e.String())
	if asJSON {
		b, err := json.Marshal(e)
		if err != nil {
			logInfo("event: %v", err)
			return
		}
		line = string(b)
	}
	if _, err := fmt.Fprintln(out, line); err != nil {
		logInfo("event: %v", err)
	}
	if ends.Announce == nil || e.Change == watch.Left {
		return
	}
	reason := map[watch.Change]string{watch.Slow: "PlaceSlow", watch.Recovered: "PlaceRecovered"}[e.Change]
	if err := ends.Announce(ctx, e.Place.From, e.Change == watch.Slow, reason, e.Text()); err != nil {
		logInfo("the event is not in the cluster: %v", err)
	}
}
