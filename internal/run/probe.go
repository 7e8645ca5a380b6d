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
	// Guest says that another kernel could run it, as cnibench run does.
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

// ProbeLab probes this kernel in the lab's container and hands the result to show
// there. Outside of the container it starts this same command line inside.
func ProbeLab(ctx context.Context, show func(*Probe) error) error {
	if !lab.Contained() {
		// In the container every user is root.
		if err := os.Setenv(userEnv, userWord()); err != nil {
			return err
		}
		return Contain(ctx)
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	p, err := probe(ctx)
	if err != nil {
		return err
	}
	return show(p)
}

const userEnv = "CNIBENCH_PROBE_USER"

func userWord() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "user"
}

func probe(ctx context.Context) (*Probe, error) {
	features, err := lab.Probe()
	if err != nil {
		return nil, err
	}
	p := &Probe{Schema: "cnibench/probe/1", Kernel: lab.KernelRelease(), User: os.Getenv(userEnv), Features: features}
	wanted, err := programs.Run("", nil)
	if err != nil {
		return nil, err
	}
	for _, w := range wanted {
		p.Programs = append(p.Programs, Program{w.Program, w.Package, w.Here, w.Remedy})
	}
	a, err := lab.New(lab.Options{
		Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto,
		CPUs: lab.DefaultPlacement(lab.CPUs()),
	})
	if err != nil {
		return nil, err
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	p.Contenders, err = supports(ctx, a, cat.Contenders)
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
	return "cnibench run boots a guest for it"
}

// ProbeCluster probes the request's cluster, as a run does first, and hands the result
// to show.
func ProbeCluster(ctx context.Context, f *Request, show func(*ClusterProbe) error) error {
	place, err := NewKube(f)
	if err != nil {
		return err
	}
	return place.Inside(ctx, func(ctx context.Context) error {
		opened, err := place.Open(ctx)
		if err != nil {
			return err
		}
		cat, err := LoadCatalogue(place.Own()...)
		if err != nil {
			return err
		}
		p := &ClusterProbe{Schema: "cnibench/probe-kube/1", Environment: opened.Arena.Environment()}
		if p.Contenders, err = supports(ctx, opened.Arena, place.Candidates(cat.Contenders)); err != nil {
			return err
		}
		return show(p)
	})
}
