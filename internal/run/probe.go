package run

import (
	"context"
	"os"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/result"
)

// Probe is what this machine can run.
type Probe struct {
	Schema     string        `json:"schema"`
	Kernel     string        `json:"kernel"`
	User       string        `json:"user"` // root, or user (in a user namespace)
	Features   []lab.Feature `json:"features"`
	Programs   []Program     `json:"programs"`
	Contenders []Support     `json:"contenders"`
}

// Program is a program that runs in the lab may start.
type Program struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	OK      bool   `json:"ok"`
	Remedy  string `json:"remedy,omitempty"`
}

// Support says whether a contender can run.
type Support struct {
	ID string `json:"id"`
	OK bool   `json:"ok"`
	// Guest says that another kernel could run it: cnibench run --arena microvm.
	Guest  bool   `json:"guest,omitempty"`
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// ClusterProbe is what a cluster can run.
type ClusterProbe struct {
	Schema      string             `json:"schema"`
	Environment result.Environment `json:"environment"` // that a run there would record
	Contenders  []Support          `json:"contenders"`
}

// ProbeTask is what only the user's process knows.
type ProbeTask struct{ User string }

// ProbeLab probes this kernel in the lab's container.
func ProbeLab(ctx context.Context) (*Probe, error) {
	f, task := NewRequest(), ProbeTask{User: "user"} // in the container every user is root
	if os.Geteuid() == 0 {
		task.User = "root"
	}
	venue, err := f.Venue()
	if err != nil {
		return nil, err
	}
	return ProbeVerb().In(ctx, venue, task)
}

// ProbeVerb asks this kernel what the lab can run.
func ProbeVerb() Verb[ProbeTask, *Probe] {
	return Verb[ProbeTask, *Probe]{Name: "probe", Do: probe}
}

func probe(ctx context.Context, in *Inside, task ProbeTask) (*Probe, error) {
	features, err := lab.Probe()
	if err != nil {
		return nil, err
	}
	p := &Probe{Schema: "cnibench/probe/1", Kernel: lab.KernelRelease(), User: task.User, Features: features}
	wanted, err := programs.Run("", nil)
	if err != nil {
		return nil, err
	}
	for _, w := range wanted {
		p.Programs = append(p.Programs, Program{w.Program, w.Package, w.Here, w.Remedy})
	}
	opened, err := in.Venue.Open(ctx)
	if err != nil {
		return nil, err
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	p.Contenders, err = supports(ctx, opened.Arena, cat.Contenders)
	for i := range p.Contenders {
		if p.Contenders[i].Guest {
			p.Contenders[i].Remedy = guestRemedy()
		}
	}
	return p, err
}

// supports asks the arena of every contender of the list.
func supports(ctx context.Context, a arena.Arena, list []*contender.Contender) ([]Support, error) {
	var all []Support
	for _, c := range list {
		s := Support{ID: c.ID, OK: true}
		if err := a.Supports(ctx, c); err != nil {
			u := arena.AsUnsupported(err)
			if u == nil {
				return nil, err
			}
			s = Support{ID: c.ID, Guest: u.OtherKernel, Reason: u.Reason, Remedy: u.Remedy}
		}
		all = append(all, s)
	}
	return all, nil
}

// guestRemedy says how to run a contender that needs another kernel.
func guestRemedy() string {
	if err := vm.Available(); err != nil {
		return "run it in a guest: " + err.Error()
	}
	return "run it in a guest: cnibench run --arena " + MicroVM
}

// ProbeCluster probes the request's cluster, as a run does first.
func ProbeCluster(ctx context.Context, f *Request) (*ClusterProbe, error) {
	venue, err := f.Venue()
	if err != nil {
		return nil, err
	}
	return ProbeClusterVerb().In(ctx, venue, ProbeTask{})
}

// ProbeClusterVerb asks a cluster what a run there would ask.
func ProbeClusterVerb() Verb[ProbeTask, *ClusterProbe] {
	return Verb[ProbeTask, *ClusterProbe]{Name: "probe-cluster", Do: func(ctx context.Context, in *Inside, _ ProbeTask) (*ClusterProbe, error) {
		opened, err := in.Venue.Open(ctx)
		if err != nil {
			return nil, err
		}
		cat, err := LoadCatalogue(in.Venue.Own()...)
		if err != nil {
			return nil, err
		}
		p := &ClusterProbe{Schema: "cnibench/probe-kube/1", Environment: opened.Arena.Environment()}
		p.Contenders, err = supports(ctx, opened.Arena, in.Venue.Candidates(cat.Contenders))
		return p, err
	}}
}
