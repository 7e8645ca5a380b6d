package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

// Check runs the checks in the request's arena, on an underlay of each of the MTUs,
// and hands the results to show. The error carries the exit code. For --arena
// microvm it starts this same command line in a guest.
func Check(ctx context.Context, f *Request, mtus []string, checks []check.Check, show func(*CheckOutput) error) error {
	if err := f.NoGuestUnasked(); err != nil {
		return err
	}
	kind, err := FindArena(f.Arena)
	if err != nil {
		return err
	}
	if err := kind.Foreign(f.Given); err != nil {
		return err
	}
	if kind.Name == MicroVM && !guest.Inside() {
		return f.SameInGuest(ctx)
	}
	places, err := kind.Places(f, mtus)
	if err != nil {
		return err
	}
	place := places[0]
	catalogue, err := LoadCatalogue(place.Own()...)
	if err != nil {
		return err
	}
	ids, err := f.contenders(catalogue, place)
	if err != nil {
		return err
	}
	chosen := place.Candidates(catalogue.Contenders)
	if ids != nil {
		if chosen, err = catalogue.Pick(ids); err != nil {
			return err
		}
	}
	return place.Inside(ctx, func(ctx context.Context) error {
		out, err := carryOut(ctx, places, chosen, checks)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		return errors.Join(show(out), out.verdict(ids != nil))
	})
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

// carryOut checks every contender in every place.
func carryOut(ctx context.Context, places []Place, chosen []*contender.Contender, checks []check.Check) (*CheckOutput, error) {
	out := &CheckOutput{Schema: "cnibench/check/1", Results: []check.Result{}, Unsupported: []result.Unsupported{}}
	bar := console.NewProgress(os.Stderr, len(places)*len(chosen))
	defer bar.Done()
	done := 0
	for i, place := range places {
		opened, err := place.Open(ctx)
		if err != nil {
			return nil, err
		}
		a := opened.Arena
		out.Arena, out.Kernel = a.Name(), opened.Kernel
		runner := &check.Runner{Arena: a, Exe: opened.Exe}
		where := ""
		if len(places) > 1 {
			where = fmt.Sprintf("MTU %d: ", opened.MTU)
		}
		for _, c := range chosen {
			runner.Progress = func(text string) { bar.Step(done, len(places)*len(chosen), where+text, 0) }
			wanted := checks
			if i > 0 { // the results of other checks do not depend on the MTU
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

// compact sorts the list and removes what is in it twice.
func compact(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
