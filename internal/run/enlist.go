package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// enlist puts the contenders that run into the plan: first the baseline, once for every
// underlay that another contender runs on, then the others. Contenders that can't run go
// to the run's list of unsupported ones. This is the part of the plan that only the opened
// arena can make. First it says which contenders another kernel may run.
func (m *Session) enlist(ctx context.Context, a arena.Arena, run *result.Run) error {
	base, err := m.Catalogue.Contender(m.Baseline)
	if err != nil {
		return err
	}
	if err := a.Supports(ctx, base); err != nil {
		u, own := arena.AsUnsupported(err), m.Venue.Own()
		if u == nil || m.Venue.Traits().Choice || m.BaselineAsked || len(own) != 1 || slices.Contains(m.Wanted, base.ID) {
			return fmt.Errorf("baseline %s: %w", base.ID, err)
		}
		console.Logger(os.Stderr).Warn("baseline left out: there are no ratios to it", "contender", base.ID, "why", u)
		if m.Wanted != nil {
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: base.ID, Reason: u.Reason, Remedy: u.Remedy})
		}
		base = own[0]
		m.Baseline, run.Baseline = base.ID, base.ID
	}
	candidates := m.Venue.Candidates(m.Catalogue.Contenders)
	if m.Wanted != nil {
		if candidates, err = m.Catalogue.Pick(m.Wanted); err != nil {
			return err
		}
	}
	if m.Only != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(c *contender.Contender) bool { return !slices.Contains(m.Only, c.ID) })
	}
	var entries []result.Entry
	var underlays []string
	var left []error         // why contenders that the user named are left out
	var otherKernel []string // contenders that this kernel can't run, and another may
	log := console.Logger(os.Stderr)
	run.Contenders = append(run.Contenders, m.Venue.Describe(base))
	for _, c := range candidates {
		err := a.Supports(ctx, c)
		switch u := arena.AsUnsupported(err); {
		case u != nil && (m.Wanted != nil || slices.Contains(m.Venue.Own(), c)) && !m.mayLeaveOut(u):
			return fmt.Errorf("contender %s: %w", c.ID, m.withGuestRemedy(u))
		case u != nil:
			u = m.withGuestRemedy(u)
			if u.OtherKernel && m.Guest == nil {
				otherKernel = append(otherKernel, c.ID)
			}
			if m.Wanted != nil {
				left = append(left, fmt.Errorf("contender %s: %w", c.ID, u))
				log.Warn("contender left out", "contender", c.ID, "why", u)
			}
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Reason: u.Reason, Remedy: u.Remedy, OtherKernel: u.OtherKernel})
			continue
		case err != nil:
			return err
		}
		underlay := a.Variant(c)
		if !slices.Contains(underlays, underlay) {
			underlays = append(underlays, underlay)
		}
		if c.ID == base.ID {
			continue
		}
		entries = append(entries, result.Entry{ID: c.ID, Underlay: underlay})
		run.Contenders = append(run.Contenders, m.Venue.Describe(c))
	}
	if left != nil && (len(underlays) == 0 || m.Venue.Traits().Choice && len(entries) == 0) {
		return exit.With(exit.Unsupported, errors.Join(left...))
	}
	if otherKernel != nil {
		log.Warn("left out, since another kernel or other rights are needed: "+unit.Plural(len(otherKernel), "contender"), "measure", strings.Replace(m.InGuest, contendersMark, strings.Join(otherKernel, ","), 1))
	}
	var baselines []result.Entry
	for _, underlay := range underlays {
		baselines = append(baselines, result.Entry{ID: base.ID, Underlay: underlay})
	}
	run.Plan.Contenders = append(baselines, entries...)
	run.Plan.Rounds = cmp.Or(run.Plan.Rounds, analysis.RoundsForContenders(len(entries)+1))
	m.planSlices(a, &run.Plan, len(baselines))
	return m.findGaps(a, run)
}

// minSlice is the shortest slice that can be asked for.
const minSlice = 20 * time.Millisecond

// planSlices plans that all contenders are up at the same time and take slices in
// turns: all in one block if the arena has room for their loads, else in blocks beside the
// baseline. There are no slices if there is no room for another load beside the baseline's,
// or if each contender must be up alone: if a step measures an idle contender, or is between
// the nodes of a cluster, whose ports all contenders share. baselines is on how many underlays
// the baseline is.
func (m *Session) planSlices(a arena.Arena, p *result.Plan, baselines int) {
	upAlone := slices.ContainsFunc(p.Steps, func(s result.Step) bool {
		return s.Workload == analysis.Idle || s.Path == arena.PathHost && m.Venue.Traits().SharedPorts
	})
	var lead time.Duration
	if p.Slice > 0 {
		var length time.Duration
		if lead, length = a.Slice(); m.ArenaSlice {
			p.Slice = unit.Seconds(length.Seconds())
		}
	}
	n, room := len(p.Contenders), 1
	if p.Slice > 0 && !upAlone {
		room = min(n, a.MaxUp())
	}
	if n < 2 || room < min(n, baselines+1) {
		p.Slice = 0
		p.Duration, p.Warmup = m.Alone.Duration, m.Alone.Warmup
		return
	}
	p.Together, p.Lead = room, unit.Seconds(lead.Seconds())
}

// findGaps adds to the plan's gaps the steps whose path a contender lacks.
func (m *Session) findGaps(a arena.Arena, run *result.Run) error {
	seen := map[string]bool{}
	for _, entry := range run.Plan.Contenders {
		if seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		c, err := m.Catalogue.Contender(entry.ID)
		if err != nil {
			return err
		}
		for _, step := range run.Plan.Steps {
			err := a.HasPath(c, step.Path)
			u := arena.AsUnsupported(err)
			if u == nil {
				if err != nil {
					return err
				}
				continue
			}
			run.Plan.Gaps = append(run.Plan.Gaps, result.Gap{Contender: c.ID, Step: step.ID})
			if c.ID != run.Baseline { // the baseline's figures from pod to pod stand in for its own
				run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Step: step.ID, Reason: u.Reason, Remedy: u.Remedy})
			}
		}
	}
	return nil
}

// mayLeaveOut says whether a contender that the user named is left out with a warning, so
// that the others are measured. Else it is an error.
func (m *Session) mayLeaveOut(u *arena.Unsupported) bool {
	return u.Program || u.Denied || u.OtherKernel && !m.NeedThisKernel
}

// withGuestRemedy adds the guest to the remedy if another kernel would help.
func (m *Session) withGuestRemedy(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || m.Guest != nil {
		return u
	}
	withGuest := *u
	withGuest.Remedy += ", or run it in a guest: --arena microvm"
	return &withGuest
}
