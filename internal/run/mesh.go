package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/linux"
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

// meshNodes is how many nodes a lab has unless the user says more: enough to blame one.
const meshNodes = "6"

// Mesh measures every node against others in the request's venue. The error is exit.Gate if a
// place is slow.
func Mesh(ctx context.Context, f *Request, task MeshTask, maxRate string) (*mesh.Report, error) {
	venue, err := f.Venue()
	if err != nil {
		return nil, err
	}
	if !venue.Traits().Choice {
		task.Contender = cmp.Or(task.Contender, ThisCluster)
		maxRate = cmp.Or(maxRate, DefaultCap)
	}
	task.Contender = cmp.Or(task.Contender, "flannel-vxlan")
	if maxRate != "" {
		if task.Rate, err = unit.ParseBitRate(maxRate); err != nil {
			return nil, exit.Usage("--max-rate: %w", err)
		}
	}
	if venue.Traits().ThisMachine {
		if !f.Given["nodes"] {
			f.Nodes = meshNodes
		}
		if f.CPUs == "" { // agents do all of the work, and the lab would bind them to one CPU
			all := strings.ReplaceAll(linux.FormatCPUs(lab.CPUs()), ",", "+")
			f.CPUs = fmt.Sprintf("client=%s,server=%s,rest=%s", all, all, all)
		}
	}
	catalogue, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, err
	}
	if _, err := catalogue.Contender(task.Contender); err != nil {
		return nil, err
	}
	task.Seed = cmp.Or(f.Seed, uint64(time.Now().UnixNano()))
	r, err := MeshVerb().In(ctx, f, task)
	if err != nil {
		return nil, err
	}
	if len(r.Slow) > 0 {
		return r, exit.With(exit.Gate, nil)
	}
	return r, nil
}

// DefaultCap is the most that a diagnosis or a mesh sends in a cluster unless the user says more.
const DefaultCap = "200M"

// MeshVerb measures a mesh.
func MeshVerb() Verb[MeshTask, *mesh.Report] {
	return Verb[MeshTask, *mesh.Report]{Name: "mesh", Do: func(ctx context.Context, in *Inside, task MeshTask) (r *mesh.Report, err error) {
		opened, err := in.Venue.Open(ctx)
		if err != nil {
			return nil, err
		}
		catalogue, err := LoadCatalogue(in.Venue.Own()...)
		if err != nil {
			return nil, err
		}
		c, err := catalogue.Contender(task.Contender)
		if err != nil {
			return nil, err
		}
		if err := opened.Arena.Supports(ctx, c); err != nil {
			return nil, err
		}
		bar := console.NewProgress(os.Stderr, 100)
		defer bar.Done()
		bar.Step(0, 100, c.ID+" comes up", 0)
		network, err := opened.Arena.Up(ctx, c, opened.Arena.Variant(c))
		if err != nil {
			return nil, fmt.Errorf("%s does not come up: %w", c.ID, err)
		}
		defer func() { err = errors.Join(err, network.Down(context.WithoutCancel(ctx))) }()
		subject := &check.Subject{Contender: c, Network: network, Exe: opened.Exe}
		defer subject.Close()
		o := measure.Default
		o.Limits.Rate, o.Seed = float64(task.Rate), task.Seed
		if in.Venue.Traits().ThisMachine { // the nodes share its CPUs
			o.Senders, o.Limits.AtOnce = 1, 1
		}
		if task.All {
			o.Matchings = 0
		}
		o.Progress = func(done float64, text string) { bar.Step(int(100*done), 100, text, 0) }
		r, err = measure.Run(ctx, subject, nil, o)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		return r, err
	}}
}
