// Package bench measures what host settings do to a contender: `cnibench tune bench`. It
// runs the contender without settings, with each alone and with all together, as
// contenders of one run, in an arena that applies settings while a contender is up: lab.go
// in the namespaces of a lab, nodes.go on the nodes of a cluster. Package tune has the
// settings and judges the run. Next: bench.go.
package bench

import (
	"cmp"
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
	measuring "github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/tune"
)

// Bench is a request to measure settings.
type Bench struct {
	Request   *run.Request // of the run; its contenders and baseline are set here
	Contender string
	Steps     []string // the only steps of the suite to measure; nil: all
	Machine   bool     // settings of the whole machine are applied, too, during each visit
	Settings  tune.Request
}

// Task is a bench as it crosses to the worker.
type Task struct {
	run.Measurement
	Contender string
	Machine   bool
	OwnNICs   bool         // the nodes have network devices of a guest
	Settings  tune.Request // those that can be measured there
}

// Run measures the settings and returns their effects.
func (b *Bench) Run(ctx context.Context) (*tune.Judgement, error) {
	f := b.Request
	j, task, err := b.prepare()
	if err != nil {
		return nil, err
	}
	variants := tune.Variants(task.Contender, task.Settings)
	j.End.RaiseLeast(tune.MinRounds(len(variants) * len(j.Record.Plan.Steps) * tune.FiguresOfStep))
	w, err := j.Begin(ctx)
	if err == nil {
		task.Measurement = j.Measurement
		_, err = Verb().Last(w, task)
	}
	if err != nil {
		return nil, b.withJournal(err)
	}
	if err := run.WriteReport(f.Out, false, io.Discard); err != nil { // the effects follow; the run's own table would repeat them
		return nil, err
	}
	rec, err := result.Load(f.Out)
	if err != nil {
		return nil, err
	}
	judged := tune.Judge(report.Assemble(f.Out, rec, analysis.Options{}), rec.Samples, variants)
	return &judged, nil
}

// prepare makes the job, and the task without what the job will have planned.
func (b *Bench) prepare() (*run.Job, *Task, error) {
	f := b.Request
	kind := f.Kind()
	if kind.Cluster {
		b.Contender = cmp.Or(b.Contender, kind.Contender)
	}
	switch {
	case b.Contender == "":
		return nil, nil, exit.Usage("which contender? give --contender; see `cnibench list contenders`")
	case kind.Cluster:
		if err := b.checkCluster(); err != nil {
			return nil, nil, err
		}
	case kind.Guest && b.Machine:
		return nil, nil, exit.Usage("--machine: the settings would be the guest's own; leave it out, or measure on this kernel: --arena lab")
	}
	settings, err := b.benchable(b.Settings)
	if err != nil {
		return nil, nil, err
	}
	if f.Out == "" {
		f.Out = "cnibench-tune-" + time.Now().Format("20060102-150405")
	}
	f.Contenders, f.Baseline = b.Contender, b.Contender
	j, err := f.Prepare()
	if err != nil {
		return nil, nil, err
	}
	if err := keepSteps(&j.Record.Plan, b.Steps); err != nil {
		return nil, nil, err
	}
	base, err := j.Catalogue.Contender(b.Contender)
	if err != nil {
		return nil, nil, err
	}
	settings, without, err := withPorts(settings, j.Record.Plan.Steps, base)
	if err != nil {
		return nil, nil, err
	}
	if len(without) > 0 {
		fmt.Fprintf(os.Stderr, "notrack leaves out %s, whose servers do not say their ports\n", strings.Join(without, ", "))
	}
	// A setting that `cnibench run` does not know keeps the plan from being resumed as a plain run.
	j.Record.Plan.Settings["tune"] = strings.Join(settings.Names(), ",")
	if f.NIC != "" {
		j.Record.Plan.Settings["nic"] = f.NIC
	}
	for _, v := range tune.Variants(b.Contender, settings) {
		j.Copies = append(j.Copies, v.Contender(base))
	}
	j.Single = kind.Cluster || b.Machine // what is set there applies to all contenders that are up
	return j, &Task{Contender: b.Contender, Machine: b.Machine, OwnNICs: f.NIC != "", Settings: settings}, nil
}

// Verb measures a contender with settings.
func Verb() run.Verb[*Task, struct{}] {
	return run.Verb[*Task, struct{}]{Name: "tune-bench", Do: measure}
}

func measure(ctx context.Context, in *run.Inside, task *Task) (none struct{}, err error) {
	var machine machineTuning
	runErr := in.Measure(ctx, &task.Measurement, func(catalogue *run.Catalogue, a arena.Arena) (arena.Arena, error) {
		base, err := catalogue.Contender(task.Contender)
		if err != nil {
			return nil, err
		}
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		variants := map[string]tune.Variant{}
		for _, v := range tune.Variants(task.Contender, task.Settings) {
			catalogue.Contenders = append(catalogue.Contenders, v.Contender(base))
			variants[v.ID] = v
		}
		if !in.Venue.Traits().ThisMachine {
			return OnNodes(a, exe, base, variants), nil
		}
		l := &Lab{Arena: a, Exe: exe, Variants: variants, WholeMachine: task.OwnNICs}
		if task.Machine {
			err = machine.open(l)
		}
		return l, err
	})
	leftErr := machine.close()
	if ctx.Err() != nil { // the run's own error recommends --resume, which would leave the settings out
		if !errors.Is(runErr, measuring.ErrLeft) {
			runErr = nil
		}
		return none, errors.Join(newInterrupted(task.Dir), runErr, leftErr)
	}
	return none, errors.Join(runErr, leftErr)
}

// withJournal adds to the error of a lab that was killed how to revert the settings of this
// machine.
func (b *Bench) withJournal(err error) error {
	dir, dirErr := tune.StateDir()
	if !b.Machine || dirErr != nil || !tune.HasJournal(dir) {
		return err
	}
	return errors.Join(err, errors.New("settings of this machine are still applied; take them back with: cnibench tune revert"))
}

// machineTuning is the journal of the settings of the whole machine.
type machineTuning struct {
	journal *tune.Journal // nil: none are set
	before  int           // changes in the journal before this bench
}

// open gives the lab the machine. The journal is held until this process ends: nobody else
// may tune meanwhile.
func (m *machineTuning) open(l *Lab) (err error) {
	if l.Host, err = tune.LocalMachine(); err != nil {
		return err
	}
	dir, err := tune.StateDir()
	if err != nil {
		return err
	}
	if l.Journal, err = tune.OpenJournal(dir, l.Host.BootID()); err != nil {
		return err
	}
	m.journal, m.before = l.Journal, len(l.Journal.Entries())
	return nil
}

// close ends the tuning of the machine. The error names changes that were not reverted.
func (m *machineTuning) close() error {
	if m.journal == nil {
		return nil
	}
	var left []string
	entries := m.journal.Entries()
	for _, e := range entries[min(m.before, len(entries)):] {
		left = append(left, e.Place.String())
	}
	err := m.journal.Close()
	if len(left) > 0 {
		err = errors.Join(fmt.Errorf("not taken back: %s", strings.Join(left, ", ")), err)
	}
	return err
}

// newInterrupted is the error of an interrupted bench; it names what was measured until then.
func newInterrupted(dir string) error {
	if _, err := result.Load(dir); err != nil {
		return errors.New("interrupted before the first sample")
	}
	return fmt.Errorf("interrupted; what was measured until then: cnibench report %s", dir)
}

// benchable leaves out the settings that the lab can't measure and names them on
// standard error. It is an error if no setting is left.
func (b *Bench) benchable(req tune.Request) (tune.Request, error) {
	var kept []tune.Choice
	var left []string
	nodes := b.Request.Kind().Cluster // which have all settings of a machine
	remedy := "apply it with `cnibench tune apply`, and compare a run before with one after"
	for _, choice := range req.Settings {
		s, err := tune.Lookup(choice.Setting)
		if err != nil {
			return req, err
		}
		why := s.NotInLab()
		if nodes {
			why = ""
		}
		switch {
		case b.Request.NIC != "" && s.NeedsNIC():
			kept = append(kept, choice)
		case why != "":
			left = append(left, s.Name+": "+why)
		case s.Scope == tune.ScopeMachine && !b.Machine && !nodes:
			left = append(left, s.Name+": the whole machine's, a lab's namespaces have none of their own")
			remedy = "measure with --machine"
		default:
			kept = append(kept, choice)
		}
	}
	for key := range req.Sysctls {
		if !strings.HasPrefix(key, "net.") && !b.Machine && !nodes {
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
	for _, l := range left {
		fmt.Fprintf(os.Stderr, "left out: %s\n", l)
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
