package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/measure"
	"github.com/cnibench/cnibench/internal/mesh/rundir"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// MeshTask is what `cnibench mesh` asks for besides its Request.
type MeshTask struct {
	Contender string
	All       bool         // every two nodes send bursts to each other
	Rate      unit.BitRate // the most that a sender sends; 0: no limit
	Seed      uint64
	MaxTime   time.Duration // 0: no limit

	Watch *Watching // nil: the mesh is measured once

	Out      string // the run directory
	Resume   bool   // go on with the mesh in it
	Arena    string
	Settings map[string]string // of the arena, for a resumption
	Tool     result.Tool
}

// meshNodes is how many nodes a lab has unless the user says more: enough to blame one.
const meshNodes = "6"

// prepareMesh completes the request and the task before anything is made, and returns the venue.
func (f *Request) prepareMesh(task *MeshTask) (Venue, error) {
	if f.Resume != "" {
		if err := f.resumeMesh(task); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Kind().Cluster:
		if err := f.chooseNodes(); err != nil {
			return nil, err
		}
	case !f.Given["nodes"] && f.Resume == "":
		f.Nodes = meshNodes
	}
	if task.Watch != nil {
		if err := task.Watch.check(f); err != nil {
			return nil, err
		}
	}
	if f.MaxTime < 0 {
		return nil, exit.Usage("--max-time %v: too small; give a positive time, or 0 for no limit", f.MaxTime)
	}
	task.MaxTime = f.MaxTime
	task.Seed = cmp.Or(f.Seed, uint64(time.Now().UnixNano()))
	return f.forOne(&task.Contender, &task.Rate)
}

// chooseNodes reads --nodes of a cluster: all, a number, LABEL=VALUE or names.
func (f *Request) chooseNodes() error {
	if !f.Given["nodes"] {
		return nil
	}
	n, err := strconv.Atoi(f.Nodes)
	switch {
	case f.Nodes == "all":
	case err == nil && n >= 2:
		f.Most = n
	case err == nil:
		return exit.Usage("--nodes %s: too few; a mesh takes 2 or more, and 3 to blame one", f.Nodes)
	case strings.Contains(f.Nodes, "="):
		if f.Cluster.NodeLabel != "" {
			return exit.Usage("--nodes %s and --node-label %s: leave one of the two out", f.Nodes, f.Cluster.NodeLabel)
		}
		f.Cluster.NodeLabel = f.Nodes
	default:
		return nil
	}
	f.Given["nodes"] = false // no names
	return nil
}

// resumeMesh takes what the run directory remembers.
func (f *Request) resumeMesh(task *MeshTask) error {
	if err := checkOwner(f.Resume); err != nil {
		return err
	}
	rec, m, err := loadMesh(f.Resume)
	if err != nil {
		return err
	}
	if f.Arena, err = arenaOf(f.Arena, rec.Run.Arena, f.Given["arena"]); err != nil {
		return err
	}
	f.Out, task.Contender, f.Seed = f.Resume, m.Contender, m.Plan.Seed
	if !f.Kind().Cluster {
		f.Nodes = strconv.Itoa(len(m.Plan.Nodes))
		delete(m.Settings, "nodes")
	}
	return f.ApplyRecorded(m.Settings)
}

// loadMesh reads a run directory that holds a mesh.
func loadMesh(dir string) (*result.Record, *rundir.Mesh, error) {
	rec, err := result.Load(dir)
	if err != nil {
		return nil, nil, err
	}
	m, is, err := rundir.Read(rec)
	if err == nil && !is {
		err = exit.Usage("%s is no mesh; `cnibench report %s` shows what it is", dir, dir)
	}
	return rec, m, err
}

// Mesh measures every node against others in the request's venue, in a run directory. The error
// is exit.Gate if a place is slow.
func Mesh(ctx context.Context, f *Request, task MeshTask) (*mesh.Report, error) {
	venue, err := f.prepareMesh(&task)
	if err != nil {
		return nil, err
	}
	f.Out = cmp.Or(f.Out, "cnibench-mesh-"+time.Now().Format("20060102-150405"))
	if !f.Kind().Cluster {
		if err := refuseHidden(f.Out); err != nil {
			return nil, err
		}
	}
	task.Out, task.Resume, task.Tool, task.Settings = f.Out, f.Resume != "", f.Tool, f.Settings()
	task.Arena = f.Kind().made
	r, err := MeshVerb().In(ctx, venue, task)
	if err != nil {
		if _, missing := os.Stat(f.Out); missing == nil {
			err = fmt.Errorf("%w; what is sealed stays: go on with `%s`", err, f.resumption("mesh"))
		}
		return nil, err
	}
	err = result.WriteFile(f.Out, "report.html", r.WritePage)
	logInfo("run directory: %s", f.Out)
	if err == nil && len(r.Slow) > 0 {
		err = exit.With(exit.Gate, nil)
	}
	return r, err
}

// MeshPlan writes what Mesh would send. It makes nothing and sends nothing.
func MeshPlan(ctx context.Context, f *Request, task MeshTask, out io.Writer) error {
	venue, err := f.prepareMesh(&task)
	if err != nil {
		return err
	}
	nodes, err := venue.Machines(ctx)
	if err != nil {
		return err
	}
	plan := meshPlan(nodes, venue.Traits(), task)
	if task.Watch != nil {
		plan = mesh.RoundPlan(nodes, task.Watch.Every, task.Seed)
	}
	_, err = fmt.Fprint(out, plan.String())
	return err
}

// meshPlan returns the plan of a mesh of these nodes.
func meshPlan(nodes []mesh.Node, traits Traits, task MeshTask) mesh.Plan {
	p := mesh.DefaultPlan(nodes)
	p.Limits.Rate, p.Seed = float64(task.Rate), task.Seed
	if traits.ThisMachine { // the nodes share its CPUs
		p.Senders, p.AtOnce, p.Limits.AtOnce = 1, 1, 1
	}
	if task.All {
		p.Matchings = 0
	}
	return p.Within(task.MaxTime)
}

// MeshVerb measures a mesh.
func MeshVerb() Verb[MeshTask, *mesh.Report] {
	return Verb[MeshTask, *mesh.Report]{Name: "mesh", Do: measureMesh}
}

func measureMesh(ctx context.Context, in *Inside, task MeshTask) (r *mesh.Report, err error) {
	bar := console.NewProgress(os.Stderr, 100)
	defer bar.Done()
	bar.Step(0, 100, task.Contender+" comes up", 0)
	ends, err := in.Venue.Ends(ctx, task.Contender)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ends.Close(context.WithoutCancel(ctx))) }()
	store, kept, err := in.meshStore(ends, task)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, line := range strings.Split(strings.TrimSpace(kept.Plan.String()), "\n") {
		bar.Message(line)
	}
	var one sync.Mutex
	r, err = measure.Run(ctx, ends.Network, kept.Plan, measure.Options{
		Known: kept.Figures,
		Seal:  func(list []mesh.Figure) error { return kept.Seal(store, list, time.Now()) },
		Progress: func(done float64, text string) {
			one.Lock()
			defer one.Unlock()
			if done < 0 {
				bar.Message(text)
				return
			}
			bar.Step(int(100*done), 100, text, 0)
		},
	})
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if err == nil {
		err = store.End(time.Now())
	}
	return r, err
}

// meshStore makes the run directory of a new mesh, or opens that of a resumed one.
func (in *Inside) meshStore(ends *Ends, task MeshTask) (*result.Store, *rundir.Mesh, error) {
	if task.Resume {
		store, rec, err := result.Resume(task.Out)
		if err != nil {
			return nil, nil, err
		}
		store.SetTool(task.Tool, rec.Run.Tool)
		m, _, err := rundir.Read(rec)
		if err != nil {
			return nil, nil, errors.Join(err, store.Close())
		}
		return store, m, nil
	}
	m := &rundir.Mesh{Plan: meshPlan(ends.Nodes, in.Venue.Traits(), task), Contender: task.Contender}
	run, err := rundir.New(task.Out, task.Tool, task.Arena, task.Contender, m.Plan, ends.Absent, task.Settings, time.Now())
	if err != nil {
		return nil, nil, err
	}
	store, err := result.Create(task.Out, run)
	return store, m, err
}

// Machines implements Venue.
func (p *labVenue) Machines(context.Context) (out []mesh.Node, err error) {
	for i := range p.options.Nodes {
		out = append(out, mesh.Node{Name: fmt.Sprintf("node%d", i+1)})
	}
	return out, nil
}

// Machines implements Venue.
func (k *clusterVenue) Machines(ctx context.Context) (out []mesh.Node, err error) {
	list, err := kube.ListNodes(ctx, k.Options, k.request.Most)
	if err != nil {
		return nil, KubeError(err)
	}
	for _, n := range list {
		out = append(out, mesh.Node{Name: n.RealName, Zone: n.Zone})
	}
	return out, nil
}
