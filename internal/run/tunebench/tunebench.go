// Package tunebench measures what host settings do to a contender of the lab or of a
// cluster. Package tune has the settings and judges the run, package visit applies them
// while a contender is up. Next: Bench, below.
package tunebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/tune/visit"
)

// Bench measures what settings do to a contender of the lab or a cluster: it runs the
// contender without them, with each alone and with all together, as contenders of
// one run. Next: package tune, which makes the variants and judges them.
type Bench struct {
	Request   *run.Request // of the run; its contenders and baseline are set here
	Contender string
	Steps     []string // the only steps of the suite to measure; nil: all
	Machine   bool     // settings of the whole machine are applied, too, during each visit
	Settings  tune.Request

	journal *tune.Journal // if Machine
	before  int           // changes in the journal before this bench
}

// Run measures the settings and hands their effects to show. For a guest and for the
// lab's container it starts this same command line there.
func (b *Bench) Run(ctx context.Context, show func(tune.Judgement) error) error {
	f := b.Request
	if err := f.NoGuestUnasked(); err != nil {
		return err
	}
	if f.Arena == run.Kube && b.Contender == "" {
		b.Contender = run.ThisCluster
	}
	if b.Contender == "" {
		return exit.Usage("which contender? give --contender; see `cnibench list contenders`")
	}
	if f.Arena == run.Kube {
		if err := b.checkCluster(); err != nil {
			return err
		}
	}
	if f.Arena == run.MicroVM && b.Machine {
		return exit.Usage("--machine: the settings would be the guest's own; leave it out, or measure on this kernel: --arena lab")
	}
	settings, err := b.benchable(b.Settings)
	if err != nil {
		return err
	}
	var out []string // the guest must not choose a name by its own clock
	if f.Out == "" {
		f.Out = "cnibench-tune-" + time.Now().Format("20060102-150405")
		out = []string{"--out", f.Out}
	}
	f.Contenders, f.Baseline = b.Contender, b.Contender
	if err := f.Check(); err != nil {
		return err
	}
	j, err := f.Prepare()
	if err != nil {
		return err
	}
	if err := keepSteps(&j.Plan, b.Steps); err != nil {
		return err
	}
	base, err := j.Catalogue.Contender(b.Contender)
	if err != nil {
		return err
	}
	settings, without, err := withPorts(settings, j.Plan.Steps, base)
	if err != nil {
		return err
	}
	if len(without) > 0 && startedByUser() {
		fmt.Fprintf(os.Stderr, "notrack leaves out %s, whose servers do not say their ports\n", strings.Join(without, ", "))
	}
	variants := b.enlist(j, base, settings)
	f.LeastRounds = tune.MinRounds(len(variants) * len(j.Plan.Steps) * tune.FiguresOfStep)
	switch {
	case f.Arena == run.MicroVM && startedByUser():
		return f.SameInGuest(ctx, out...)
	case f.Arena != run.Kube && !lab.Contained():
		return b.lead(ctx, j.Place)
	}
	return j.Place.Inside(ctx, func(ctx context.Context) error {
		wrap := b.inLab
		if f.Arena == run.Kube {
			wrap = func(a arena.Arena, exe string, variants map[string]tune.Variant) (arena.Arena, error) {
				return visit.OnNodes(a, exe, base, variants), nil
			}
		}
		j.Wrap = func(a arena.Arena) (arena.Arena, error) {
			exe, err := os.Executable()
			if err != nil {
				return nil, err
			}
			byID := map[string]tune.Variant{}
			for _, v := range variants {
				byID[v.ID] = v
			}
			return wrap(a, exe, byID)
		}
		// The effects follow; the run's own table would repeat them at length.
		f.Stdout = io.Discard
		runErr := j.Run(ctx)
		leftErr := b.closeJournal()
		if ctx.Err() != nil { // the run's own error recommends --resume, which would leave the settings out
			return errors.Join(b.interrupted(), leftErr)
		}
		if err := errors.Join(runErr, leftErr); err != nil {
			return err
		}
		rec, err := result.Load(f.Out)
		if err != nil {
			return err
		}
		return show(tune.Judge(run.Assemble(f.Out, rec, analysis.Options{}), rec.Samples, variants))
	})
}

// startedByUser reports whether the user started this process. Only such a process prints
// notes on the settings.
func startedByUser() bool { return !lab.Contained() && !guest.Inside() }

// lead starts the lab. If the lab was killed before it reverted the settings of this
// machine, the error says how to revert them.
func (b *Bench) lead(ctx context.Context, place run.Place) error {
	err := place.Inside(ctx, nil) // which starts the container
	dir, dirErr := tune.StateDir()
	if err == nil || !b.Machine || dirErr != nil || !tune.HasJournal(dir) {
		return err
	}
	left := errors.New("settings of this machine are still applied; take them back with: cnibench tune revert")
	var silent *exit.Error
	if errors.As(err, &silent) && silent.Err == nil { // the lab has printed its error
		return exit.With(silent.Code, left)
	}
	return errors.Join(err, left)
}

// closeJournal ends the tuning of the machine. The error names changes that were not
// reverted.
func (b *Bench) closeJournal() error {
	if b.journal == nil {
		return nil
	}
	var left []string
	entries := b.journal.Entries()
	for _, e := range entries[min(b.before, len(entries)):] {
		left = append(left, e.Place.String())
	}
	err := b.journal.Close()
	if len(left) > 0 {
		err = errors.Join(fmt.Errorf("not taken back: %s", strings.Join(left, ", ")), err)
	}
	return err
}

// interrupted is the error of an interrupted bench; it names what was measured until then.
func (b *Bench) interrupted() error {
	if _, err := result.Load(b.Request.Out); err != nil {
		return errors.New("interrupted before the first sample")
	}
	return fmt.Errorf("interrupted; what was measured until then: cnibench report %s", b.Request.Out)
}

// benchable leaves out the settings that the lab can't measure and names them on
// standard error. It is an error if no setting is left.
func (b *Bench) benchable(req tune.Request) (tune.Request, error) {
	var kept []tune.Choice
	var left []string
	remedy := "apply it with `cnibench tune apply`, and compare a run before with one after"
	for _, choice := range req.Settings {
		s, err := tune.Lookup(choice.Setting)
		if err != nil {
			return req, err
		}
		why := s.NotInLab()
		if b.Request.Arena == run.Kube {
			why = ""
		}
		switch {
		case b.Request.NIC != "" && s.NeedsNIC():
			kept = append(kept, choice)
		case why != "":
			left = append(left, s.Name+": "+why)
		case s.Scope == tune.ScopeMachine && !b.Machine && b.Request.Arena != run.Kube:
			left = append(left, s.Name+": the whole machine's, a lab's namespaces have none of their own")
			remedy = "measure with --machine"
		default:
			kept = append(kept, choice)
		}
	}
	for key := range req.Sysctls {
		if !strings.HasPrefix(key, "net.") && !b.Machine && b.Request.Arena != run.Kube {
			return req, exit.Usage("--sysctl %s is the whole machine's: measure it with --machine", key)
		}
	}
	req.Settings = kept
	if len(req.Names()) == 0 && len(left) > 0 {
		return req, &arena.Unsupported{Reason: strings.Join(left, "; "), Remedy: remedy}
	}
	if len(req.Names()) == 0 {
		return req, exit.Usage("nothing to measure: name settings, or a --profile; `cnibench list tunings` shows them")
	}
	if startedByUser() {
		for _, l := range left {
			fmt.Fprintf(os.Stderr, "left out: %s\n", l)
		}
	}
	return req, nil
}

// keepSteps leaves only the named steps in the plan.
func keepSteps(p *result.Plan, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var kept []result.Step
	for _, name := range names {
		s, err := text.Find("step", name, p.Steps, func(s result.Step) string { return s.ID })
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(kept, func(k result.Step) bool { return k.ID == s.ID }) {
			kept = append(kept, s)
		}
	}
	p.Steps = kept
	return nil
}

// enlist adds the variants to what the job runs.
func (b *Bench) enlist(j *run.Job, base *contender.Contender, req tune.Request) []tune.Variant {
	variants := tune.Variants(b.Contender, req)
	for _, v := range variants {
		j.Catalogue.Contenders = append(j.Catalogue.Contenders, v.Contender(base))
		j.Wanted = append(j.Wanted, v.ID)
	}
	// A setting that `cnibench run` does not know keeps the plan from being resumed as a plain run.
	j.Plan.Settings["tune"] = strings.Join(req.Names(), ",")
	if b.Request.NIC != "" {
		j.Plan.Settings["nic"] = b.Request.NIC
	}
	return variants
}

// checkCluster sees that the nodes of the cluster may be changed.
func (b *Bench) checkCluster() error {
	if b.Machine {
		return exit.Usage("--machine: on the nodes of a cluster all settings are the machine's; leave it out")
	}
	if !b.Request.Cluster.Privileged {
		return &arena.Unsupported{
			Reason: "settings of nodes are made on the nodes, by a privileged pod on each, and taken back after each measurement",
			Remedy: "allow that with --privileged, if this cluster is yours; or measure in a lab: leave --arena out",
		}
	}
	b.Request.OnNodes = true
	return nil
}

// inLab returns the lab as an arena that tunes contenders once they are up.
func (b *Bench) inLab(a arena.Arena, exe string, variants map[string]tune.Variant) (_ arena.Arena, err error) {
	bench := &visit.Lab{Arena: a, Exe: exe, Variants: variants, WholeMachine: b.Request.NIC != ""}
	if !b.Machine {
		return bench, nil
	}
	if bench.Host, err = tune.LocalMachine(); err != nil {
		return nil, err
	}
	dir, err := tune.StateDir()
	if err != nil {
		return nil, err
	}
	// Held until this process ends: nobody else may tune meanwhile.
	bench.Journal, err = tune.OpenJournal(dir, bench.Host.BootID())
	if err != nil {
		return nil, err
	}
	b.journal, b.before = bench.Journal, len(bench.Journal.Entries())
	return bench, nil
}
