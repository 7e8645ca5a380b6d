package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// CheckTask is which checks to carry out, on an underlay of each of the MTUs.
type CheckTask struct {
	Check string        // a name, or all
	MTUs  []string      // bytes; the arena kube has its own
	Case  check.OneCase // of policy; without a name all

	Contenders []string // to check, set by Check
	EveryNode  bool     // of a cluster: pairs of nodes in turn, until all were asked; set by Check
}

// checks returns the checks of the task.
func (t *CheckTask) checks() ([]check.Check, error) {
	if t.Case.Name == "" {
		return check.ParseNames(t.Check)
	}
	one := t.Case
	one.Say = func(text string) { fmt.Fprintln(os.Stderr, text) }
	c, err := check.Policy(one)
	return []check.Check{c}, err
}

// Check carries the task out in the request's venue. The error carries the exit code;
// the output is nil if nothing was checked.
func Check(ctx context.Context, f *Request, task CheckTask) (*CheckOutput, error) {
	if _, err := task.checks(); err != nil {
		return nil, err
	}
	venue, err := f.Venue()
	if err != nil {
		return nil, err
	}
	if _, err := venue.Underlays(task.MTUs); err != nil {
		return nil, err
	}
	catalogue, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, err
	}
	chosen, err := f.candidates(catalogue, venue)
	if err != nil {
		return nil, err
	}
	for _, c := range chosen {
		task.Contenders = append(task.Contenders, c.ID)
	}
	task.EveryNode = f.EveryNode
	out, err := CheckVerb().In(ctx, venue, task)
	if err != nil {
		return nil, err
	}
	return out, out.verdict(f.namesContenders())
}

// CheckVerb carries checks out.
func CheckVerb() Verb[CheckTask, *CheckOutput] {
	return Verb[CheckTask, *CheckOutput]{Name: "check", Do: func(ctx context.Context, in *Inside, task CheckTask) (*CheckOutput, error) {
		checks, err := task.checks()
		if err != nil {
			return nil, err
		}
		venues, err := in.Venue.Underlays(task.MTUs)
		if err != nil {
			return nil, err
		}
		if cluster, ok := in.Venue.(*clusterVenue); ok && task.EveryNode {
			if venues, err = cluster.pairs(ctx); err != nil {
				return nil, err
			}
		}
		catalogue, err := LoadCatalogue(in.Venue.Own()...)
		if err != nil {
			return nil, err
		}
		chosen, err := catalogue.Pick(task.Contenders)
		if err != nil {
			return nil, err
		}
		out, err := carryOut(ctx, venues, chosen, checks)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		return out, err
	}}
}

// CheckOutput is what `cnibench check` found; --json prints it.
type CheckOutput struct {
	Schema      string               `json:"schema"`
	Arena       string               `json:"arena"`
	Kernel      string               `json:"kernel"`
	Results     []check.Result       `json:"results"`
	Matrix      check.Matrix         `json:"matrix"`
	Unsupported []result.Unsupported `json:"unsupported"`
}

// carryOut checks every contender in every venue.
func carryOut(ctx context.Context, venues []Venue, chosen []*contender.Contender, checks []check.Check) (*CheckOutput, error) {
	out := &CheckOutput{Schema: "cnibench/check/1", Results: []check.Result{}, Unsupported: []result.Unsupported{}}
	bar := console.NewProgress(os.Stderr, len(venues)*len(chosen))
	defer bar.Done()
	done, mtu := 0, 0
	for i, venue := range venues {
		opened, err := venue.Open(ctx)
		if err != nil {
			return nil, err
		}
		a := opened.Arena
		out.Arena, out.Kernel = a.Name(), opened.Kernel
		runner := &check.Runner{Arena: a, Exe: opened.Exe}
		where := ""
		if len(venues) > 1 {
			where = fmt.Sprintf("MTU %d: ", opened.MTU)
		}
		cluster, isCluster := a.(*kube.Arena)
		if isCluster && len(venues) > 1 {
			where = fmt.Sprintf("nodes %d of %d: ", i+1, len(venues))
		}
		if i == 0 {
			mtu = opened.MTU
		}
		for _, c := range chosen {
			runner.Progress = func(text string) { bar.Step(done, len(venues)*len(chosen), where+text, 0) }
			wanted := checks
			if opened.MTU != mtu { // the results of other checks do not depend on the MTU
				wanted = slices.DeleteFunc(slices.Clone(checks), func(c check.Check) bool { return c.Info().Name != "mtu" })
			}
			done++
			if err := a.Supports(ctx, c); err != nil {
				u := arena.AsUnsupported(err)
				if u == nil {
					return nil, err
				}
				if i == 0 {
					out.Unsupported = append(out.Unsupported, result.Unsupported{Contender: c.ID, Reason: u.Reason, Remedy: u.Remedy})
				}
				continue
			}
			if len(wanted) == 0 {
				continue
			}
			results, err := runner.Run(ctx, c, a.Variant(c), wanted)
			if err != nil {
				return nil, err
			}
			if isCluster {
				for i := range results {
					results[i].Rename(cluster.RestoreNames)
				}
			}
			out.Results = append(out.Results, results...)
		}
	}
	return out, nil
}

// verdict returns the error that carries the exit code: a check that could not be
// carried out weighs most, then a claim that is not so, then a contender that was
// named and can't run here.
func (o *CheckOutput) verdict(named bool) error {
	var broken, failed []string
	for _, r := range o.Results {
		name := r.Contender + " (" + r.Check + ")"
		switch {
		case r.Error != "":
			broken = append(broken, name)
		case r.Verdict() == check.Fail:
			failed = append(failed, name)
		}
	}
	switch {
	case len(broken) > 0:
		return exit.With(exit.Failed, fmt.Errorf("not carried out: %s", strings.Join(compact(broken), ", ")))
	case len(failed) > 0:
		return exit.With(exit.Gate, fmt.Errorf("not as claimed: %s", strings.Join(compact(failed), ", ")))
	case o.Idle() != "":
		return exit.With(exit.Unsupported, fmt.Errorf("nothing was checked: %s", o.Idle()))
	case named && len(o.Unsupported) > 0:
		var ids []string
		for _, u := range o.Unsupported {
			ids = append(ids, u.Contender)
		}
		hint := ""
		if o.Arena == Lab {
			hint = "; --arena microvm may help"
		}
		return exit.With(exit.Unsupported, fmt.Errorf("can't run here: %s%s", strings.Join(ids, ", "), hint))
	}
	return nil
}

// Idle says why nothing was checked of any contender, which is the reason of most; "" if
// something was.
func (o *CheckOutput) Idle() string {
	why, maximum, counts := "", 0, map[string]int{}
	for i := range o.Results {
		r := &o.Results[i]
		told := r.MainCase()
		if r.Error != "" || r.Verdict() != check.Skip || told == nil {
			return ""
		}
		text := strings.TrimSuffix(strings.TrimSuffix(told.Text, ".")+". "+told.Next, ". ")
		if counts[text]++; counts[text] > maximum {
			why, maximum = text, counts[text]
		}
	}
	return why
}

// compact sorts the list and removes what is in it twice.
func compact(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
