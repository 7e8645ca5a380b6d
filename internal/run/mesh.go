package run

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/measure"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// MeshTask is what `cnibench mesh` asks for besides its Request.
type MeshTask struct {
	Contender string
	All       bool         // every two nodes send bursts to each other
	Rate      unit.BitRate // the most that a sender sends; 0: no limit
	Seed      uint64
}

// meshNodes is how many nodes a lab has unless the user says more: enough to blame one. A cluster has all of its own.
const meshNodes = "6"

// Mesh measures every node against others in the request's venue. The error is exit.Gate if a
// place is slow.
func Mesh(ctx context.Context, f *Request, task MeshTask) (*mesh.Report, error) {
	if !f.Given["nodes"] {
		f.Nodes = meshNodes
	}
	venue, err := f.forOne(&task.Contender, &task.Rate)
	if err != nil {
		return nil, err
	}
	task.Seed = cmp.Or(f.Seed, uint64(time.Now().UnixNano()))
	r, err := MeshVerb().In(ctx, venue, task)
	if err == nil && len(r.Slow) > 0 {
		err = exit.With(exit.Gate, nil)
	}
	return r, err
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
	o := measure.Default
	o.Limits.Rate, o.Seed = float64(task.Rate), task.Seed
	if in.Venue.Traits().ThisMachine { // the nodes share its CPUs
		o.Senders, o.Limits.AtOnce = 1, 1
	}
	if task.All {
		o.Matchings = 0
	}
	o.Progress = func(done float64, text string) { bar.Step(int(100*done), 100, text, 0) }
	r, err = measure.Run(ctx, ends.Network, o)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return r, err
}
