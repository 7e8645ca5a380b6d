package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// newPlan makes the plan of a new run, as far as it does not hang on what the
// kernel can do.
func (j *job) newPlan(c *cobra.Command) error {
	f := j.flags
	s, err := j.catalogue.suite(f.suite)
	if err != nil {
		return err
	}
	steps, err := s.Expand(f.rates, f.services)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	j.plan = result.Plan{
		Suite: s.ID, Rounds: s.Rounds, Seed: f.seed, Steps: steps, Settings: f.settings(),
		Duration: unit.Seconds(s.Duration.Seconds()), Warmup: unit.Seconds(s.Warmup.Seconds()),
	}
	if c.Flags().Changed("rounds") {
		j.plan.Rounds = f.rounds
	}
	if c.Flags().Changed("duration") {
		j.plan.Duration = unit.Seconds(f.duration.Seconds())
	}
	if c.Flags().Changed("warmup") {
		j.plan.Warmup = unit.Seconds(f.warmup.Seconds())
	}
	if !c.Flags().Changed("seed") {
		j.plan.Seed = rand.Uint64() >> 12 // exact in a JSON reader's double
	}
	if _, err := j.catalogue.contender(f.baseline); err != nil {
		return err
	}
	switch f.contenders {
	case "supported", "all":
	default:
		for _, id := range strings.Split(f.contenders, ",") {
			if id = strings.TrimSpace(id); id != "" && !slices.Contains(j.wanted, id) {
				j.wanted = append(j.wanted, id)
			}
		}
		if len(j.wanted) == 0 {
			return usage("--contenders: none given; see `cnibench list contenders`")
		}
		if j.wanted, err = j.ground.named(j.wanted); err != nil {
			return err
		}
		for _, id := range j.wanted {
			if _, err := j.catalogue.contender(id); err != nil {
				return err
			}
		}
	}
	return j.programs(steps)
}

// programs checks that what the steps run is installed.
func (j *job) programs(steps []result.Step) error {
	var programs []host.Program
	for _, step := range steps {
		w, err := workload.Lookup(step.Workload)
		if err != nil {
			return err
		}
		for _, p := range w.Info().Programs {
			if !slices.ContainsFunc(programs, func(other host.Program) bool { return other.Name == p.Name }) {
				programs = append(programs, p)
			}
		}
	}
	return j.ground.equip(programs)
}

// missingPrograms is the error of programs that are not on this machine.
func missingPrograms(missing []host.Program) error {
	var errs []error
	for _, p := range missing {
		errs = append(errs, &host.ProgramError{Program: p.Name, Package: p.Package})
	}
	if errs == nil {
		return nil
	}
	return &exitError{exitUnsupported, errors.Join(errs...)}
}

// enlist decides which contenders run: the baseline first, on every underlay
// that one of the others runs on. A part can be left with none.
func (j *job) enlist(ctx context.Context, a arena.Arena, run *result.Run) error {
	base, err := j.catalogue.contender(j.flags.baseline)
	if err != nil {
		return err
	}
	if err := a.Supports(ctx, base); err != nil {
		return fmt.Errorf("baseline %s: %w", base.ID, err)
	}
	candidates := j.ground.candidates(j.catalogue.contenders)
	if j.wanted != nil {
		candidates = nil
		for _, id := range j.wanted {
			c, err := j.catalogue.contender(id)
			if err != nil {
				return err
			}
			candidates = append(candidates, c)
		}
	}
	if j.only != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(c *contender.Contender) bool { return !slices.Contains(j.only, c.ID) })
	}
	var entries []result.Entry
	var underlays []string
	run.Contenders = append(run.Contenders, j.ground.describe(base))
	for _, c := range candidates {
		err := a.Supports(ctx, c)
		switch u := arena.AsUnsupported(err); {
		case u != nil && (j.wanted != nil || slices.Contains(j.ground.own(), c)) && !j.leaves(u): // asked for by name
			return fmt.Errorf("contender %s: %w", c.ID, toGuest(u))
		case u != nil:
			u = toGuest(u)
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
		run.Contenders = append(run.Contenders, j.ground.describe(c))
	}
	if j.wanted != nil && len(underlays) == 0 && len(leftToGuest(run)) > 0 {
		return &exitError{exitAllInGuest, nil}
	}
	var baselines []result.Entry
	for _, underlay := range underlays {
		baselines = append(baselines, result.Entry{ID: base.ID, Underlay: underlay})
	}
	run.Plan.Contenders = append(baselines, entries...)
	return j.findGaps(a, run)
}

// findGaps finds the steps that contenders of the plan lack the path of.
func (j *job) findGaps(a arena.Arena, run *result.Run) error {
	seen := map[string]bool{}
	for _, entry := range run.Plan.Contenders {
		if seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		c, err := j.catalogue.contender(entry.ID)
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
			if c.ID != run.Baseline { // whose figures from pod to pod stand in
				run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Step: step.ID, Reason: u.Reason, Remedy: u.Remedy})
			}
		}
	}
	return nil
}
