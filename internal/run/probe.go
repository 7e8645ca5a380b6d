package run

import (
	"context"
	"os"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
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

// ProbeLab probes this kernel in the lab's container.
func ProbeLab(ctx context.Context) (*Probe, error) {
	f := NewRequest()
	s, supports, err := f.probe(ctx, true)
	if err != nil {
		return nil, err
	}
	p := &Probe{Schema: "cnibench/probe/1", Kernel: lab.KernelRelease(), User: "user", Features: s.Features, Contenders: supports}
	if os.Geteuid() == 0 {
		p.User = "root"
	}
	wanted, err := programs.Run("", nil)
	for _, w := range wanted {
		p.Programs = append(p.Programs, Program{w.Program, w.Package, w.Here, w.Remedy})
	}
	inGuest := "cnibench run --arena " + MicroVM
	if err := vm.Available(); err != nil {
		inGuest = err.Error()
	}
	for i := range p.Contenders {
		if p.Contenders[i].Guest {
			p.Contenders[i].Remedy = "run it in a guest: " + inGuest
		}
	}
	return p, err
}

// ProbeCluster probes the request's cluster, as a run does first.
func ProbeCluster(ctx context.Context, f *Request) (*ClusterProbe, error) {
	s, supports, err := f.probe(ctx, false)
	if err != nil {
		return nil, err
	}
	return &ClusterProbe{Schema: "cnibench/probe-kube/1", Environment: s.Environment, Contenders: supports}, nil
}

// probe asks the request's venue as a run does first, about every contender.
func (f *Request) probe(ctx context.Context, features bool) (*Survey, []Support, error) {
	venue, err := f.Venue()
	if err != nil {
		return nil, nil, err
	}
	cat, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, nil, err
	}
	task := SurveyTask{Features: features}
	for _, c := range venue.Candidates(cat.Contenders) {
		task.Contenders = append(task.Contenders, c.ID)
	}
	s, err := SurveyVerb().In(ctx, venue, task)
	if err != nil {
		return nil, nil, err
	}
	var all []Support
	for _, id := range task.Contenders {
		one := Support{ID: id, OK: true}
		if u := s.Contenders[id].Unsupported; u != nil {
			one = Support{ID: id, Guest: u.OtherKernel, Reason: u.Reason, Remedy: u.Remedy}
		}
		all = append(all, one)
	}
	return s, all, nil
}
