package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// tuneBenchFlags is the command line of `cnibench tune bench`.
type tuneBenchFlags struct {
	tuneFlags
	run       runFlags
	contender string
	steps     []string
	machine   bool
	asJSON    bool
	markdown  bool
	journal   *tune.Journal // of --machine
	before    int           // changes that held in it before
}

func newTuneBenchCmd() *cobra.Command {
	var f tuneBenchFlags
	c := &cobra.Command{
		Use:   "bench SETTING…|--profile PROFILE",
		Short: "Measure what settings buy: a contender with and without them, alone and together",
		Long: strings.TrimSpace(`
Measures a contender of the lab without settings, with each setting alone, and
with all together, in shuffled rounds; ratios are paired within a round. Says of
each figure whether the setting helped, hurt, or cannot be told apart.

Settings are made in every node's and pod's network namespace and go away with
it. Those that are the whole machine's (governor, scheduler) are left out unless
--machine: then they are applied before each visit and taken back after it,
through the journal of tune apply. What the lab can't measure (interrupts and
rings of a real interface, daemons) is left out by name. Nothing stays applied.
The run directory is one like any other: cnibench report DIR shows it again.`),
		Example: `  cnibench tune bench --contender calico-vxlan offloads
  cnibench tune bench --contender flannel-vxlan --profile study-2016 --rounds 10
  cnibench tune bench --contender host --step dts --sysctl net.ipv4.tcp_rmem=4096,4096,4096`,
		RunE: func(c *cobra.Command, args []string) error { return runTuneBench(c, &f, args) },
	}
	f.choose(c)
	fl := c.Flags()
	fl.StringVar(&f.contender, "contender", "", "`contender` to tune (required); see cnibench list contenders")
	fl.StringSliceVar(&f.steps, "step", nil, "only these `steps` of the suite")
	fl.BoolVar(&f.machine, "machine", false, "apply settings that are the whole machine's, too, during each visit (needs root)")
	fl.BoolVar(&f.asJSON, "json", false, "print the verdicts as JSON")
	fl.BoolVar(&f.markdown, "markdown", false, "print the verdicts as a Markdown table")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	fl.StringVar(&f.run.Suite, "suite", "quick", "`suite` to run; see cnibench list suites")
	fl.StringVar(&f.run.Arena, "arena", "auto", "where to run: auto or lab")
	fl.IntVar(&f.run.Rounds, "rounds", 0, "passes over all settings and steps (default: the suite's)")
	fl.DurationVar(&f.run.Duration, "duration", 0, "measured window of each step (default: the suite's)")
	fl.DurationVar(&f.run.Slice, "slice", run.Slice, "variants stand at the same time and are measured by turns, for so `long` each; 0: one after the other")
	fl.DurationVar(&f.run.Warmup, "warmup", 0, "load before the window (default: the suite's)")
	fl.Uint64Var(&f.run.Seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.run.Out, "out", "", "run `directory` to write (default: cnibench-tune-TIME)")
	fl.StringVar(&f.run.Nodes, "nodes", "2", "lab: machines of the cluster, a `number`")
	fl.StringVar(&f.run.MTU, "mtu", "1500", "lab: MTU of the underlay, bytes")
	fl.StringVar(&f.run.LineRate, "line-rate", "", "lab: shape each node's link to this rate (default: unlimited)")
	fl.StringVar(&f.run.Congestion, "congestion-control", lab.CongestionAuto, "lab: TCP congestion control in every namespace")
	fl.StringVar(&f.run.CPUs, "cpus", "", "lab: CPUs of the client, the server and the rest")
	f.run.Underlay, f.run.Rates, f.run.CNITransport = lab.UnderlayAuto, "auto", "routes"
	return c
}

func runTuneBench(c *cobra.Command, f *tuneBenchFlags, args []string) error {
	req, err := f.request(args)
	if err != nil {
		return err
	}
	if f.contender == "" {
		return usage("which contender? give --contender; see `cnibench list contenders`")
	}
	if f.run.Arena == run.Kube {
		return &arena.Unsupported{
			Reason: "settings are measured in a lab, which leaves the nodes of a cluster alone",
			Remedy: "leave --arena out; or for a cluster that is yours: `cnibench run --arena kube`, `cnibench tune apply --arena kube --privileged`, the run again, and `cnibench compare` of both",
		}
	}
	req, err = f.benchable(req)
	if err != nil {
		return err
	}
	if f.run.Out == "" {
		f.run.Out = "cnibench-tune-" + time.Now().Format("20060102-150405")
	}
	f.run.Contenders, f.run.Baseline = f.contender, f.contender
	f.run.from(c)
	if err := f.run.Check(); err != nil {
		return err
	}
	j, err := f.run.Prepare()
	if err != nil {
		return err
	}
	if err := keepSteps(&j.Plan, f.steps); err != nil {
		return err
	}
	base, err := j.Catalogue.Contender(f.contender)
	if err != nil {
		return err
	}
	req, without, err := withPorts(req, j.Plan.Steps, base)
	if err != nil {
		return err
	}
	if len(without) > 0 && !lab.Contained() {
		fmt.Fprintf(os.Stderr, "notrack leaves out %s, whose servers do not say their ports\n", strings.Join(without, ", "))
	}
	variants := f.enlist(j, base, req)
	if !lab.Contained() {
		return f.lead(c.Context())
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), lab.EndSignals()...)
	defer stop()
	j.Wrap = func(a arena.Arena) (arena.Arena, error) { return f.wrap(a, variants) }
	// The run's own table would say the same at greater length.
	f.run.Stdout = io.Discard
	runErr := j.Run(ctx)
	leftErr := f.closeJournal()
	if ctx.Err() != nil { // the run's own words are about --resume, which has no settings
		return errors.Join(f.interrupted(), leftErr)
	}
	if err := errors.Join(runErr, leftErr); err != nil {
		return err
	}
	return f.judge(c.OutOrStdout(), variants)
}

// lead starts the lab, and says how its settings are taken back where it was
// killed before it could.
func (f *tuneBenchFlags) lead(ctx context.Context) error {
	err := run.Contain(ctx)
	dir, dirErr := tune.StateDir()
	if err == nil || !f.machine || dirErr != nil || !tune.HasJournal(dir) {
		return err
	}
	left := errors.New("settings of this machine are still applied; take them back with: cnibench tune revert")
	var silent *exit.Error
	if errors.As(err, &silent) && silent.Err == nil { // the lab has said why
		return exit.With(silent.Code, left)
	}
	return errors.Join(err, left)
}

// closeJournal ends the tuning of the machine. Errors: changes that were not
// taken back.
func (f *tuneBenchFlags) closeJournal() error {
	if f.journal == nil {
		return nil
	}
	var left []string
	entries := f.journal.Entries()
	for _, e := range entries[min(f.before, len(entries)):] {
		left = append(left, e.Place.String())
	}
	err := f.journal.Close()
	if len(left) > 0 {
		err = errors.Join(fmt.Errorf("not taken back: %s", strings.Join(left, ", ")), err)
	}
	return err
}

// interrupted is the error of a bench that was, with what there is to look at.
func (f *tuneBenchFlags) interrupted() error {
	if _, err := result.Load(f.run.Out); err != nil {
		return errors.New("interrupted before the first sample")
	}
	return fmt.Errorf("interrupted; what was measured until then: cnibench report %s", f.run.Out)
}

// benchable leaves settings out that nothing can be measured of, says so by
// name before the run, and refuses when none is left.
func (f *tuneBenchFlags) benchable(req tune.Request) (tune.Request, error) {
	var kept []tune.Choice
	var left []string
	remedy := "apply it with `cnibench tune apply`, and compare a run before with one after"
	for _, choice := range req.Settings {
		s, err := tune.Lookup(choice.Setting)
		if err != nil {
			return req, err
		}
		switch why := s.NotInLab(); {
		case why != "":
			left = append(left, s.Name+": "+why)
		case s.Scope == tune.ScopeMachine && !f.machine:
			left = append(left, s.Name+": the whole machine's, a lab's namespaces have none of their own")
			remedy = "measure with --machine"
		default:
			kept = append(kept, choice)
		}
	}
	for key := range req.Sysctls {
		if !strings.HasPrefix(key, "net.") && !f.machine {
			return req, usage("--sysctl %s is the whole machine's: measure it with --machine", key)
		}
	}
	req.Settings = kept
	if len(req.Names()) == 0 && len(left) > 0 {
		return req, &arena.Unsupported{Reason: strings.Join(left, "; "), Remedy: remedy}
	}
	if len(req.Names()) == 0 {
		return req, usage("nothing to measure: name settings, or a --profile; `cnibench list tunings` shows them")
	}
	if !lab.Contained() {
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
		s, err := nearest.Find("step", name, p.Steps, func(s result.Step) string { return s.ID })
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
func (f *tuneBenchFlags) enlist(j *run.Job, base *contender.Contender, req tune.Request) []tune.Variant {
	variants := tune.Variants(f.contender, req)
	for _, v := range variants {
		j.Catalogue.Contenders = append(j.Catalogue.Contenders, v.Contender(base))
		j.Wanted = append(j.Wanted, v.ID)
	}
	// A later version that reads the plan must not take it for a plain run's.
	j.Plan.Settings["tune"] = strings.Join(req.Names(), ",")
	return variants
}

// wrap is the lab whose contenders are tuned once they are up.
func (f *tuneBenchFlags) wrap(a arena.Arena, variants []tune.Variant) (arena.Arena, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &tune.Bench{Arena: a, Exe: exe, Variants: map[string]tune.Variant{}}
	for _, v := range variants {
		b.Variants[v.ID] = v
	}
	if !f.machine {
		return b, nil
	}
	if b.Host, err = tune.Local(); err != nil {
		return nil, err
	}
	dir, err := tune.StateDir()
	if err != nil {
		return nil, err
	}
	// Held until this process ends: nobody else may tune meanwhile.
	b.Journal, err = tune.OpenJournal(dir, b.Host.BootID())
	if err != nil {
		return nil, err
	}
	f.journal, f.before = b.Journal, len(b.Journal.Entries())
	return b, nil
}

// judge prints what the settings did.
func (f *tuneBenchFlags) judge(out io.Writer, variants []tune.Variant) error {
	rec, err := result.Load(f.run.Out)
	if err != nil {
		return err
	}
	r := run.Assemble(f.run.Out, rec, analysis.Options{})
	judgement := tune.Judge(r, rec.Samples, variants)
	if f.asJSON {
		return printJSON(out, benchJSON(f.run.Out, f.contender, judgement))
	}
	if f.markdown {
		printEffectsMarkdown(out, f.contender, judgement)
		return nil
	}
	printEffects(out, f.contender, judgement)
	fmt.Fprintf(out, "\nReport: %s/report.html\n", f.run.Out)
	return nil
}

// benchJSON is the verdicts for programs.
func benchJSON(run, contender string, j tune.Judgement) any {
	return struct {
		Schema    string `json:"schema"`
		Run       string `json:"run"`
		Contender string `json:"contender"`
		tune.Judgement
		Caveat string `json:"caveat,omitempty"`
	}{"cnibench/tune-bench/1", run, contender, j, caveat(j)}
}

var effectHeader = []string{"Setting", "Step", "Figure", "Without", "With", "Ratio", "Verdict"}

// effectRow is an effect in words.
func effectRow(contender string, e tune.Effect) []string {
	name := strings.TrimPrefix(e.Variant, contender+"+")
	verdict := string(e.Verdict)
	if e.Reason != "" {
		verdict += ": " + strings.Join(strings.Fields(e.Reason), " ") // errors have lines
	}
	if e.Verdict == tune.NoData {
		return []string{name, e.Step, "", "", "", "", verdict}
	}
	return []string{name, e.Step, e.Metric, unit.Format(e.Before, e.Unit), unit.Format(e.After, e.Unit), ratioWords(e), verdict}
}

// printEffects is the verdicts for people.
func printEffects(out io.Writer, contender string, j tune.Judgement) {
	var rows [][]string
	for _, e := range j.Effects {
		rows = append(rows, effectRow(contender, e))
	}
	fmt.Fprintf(out, "%s without settings and with them; ratios are paired within rounds, with 95 %% intervals\n", contender)
	printTable(out, effectHeader, rows)
	if text := caveat(j); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
}

// printEffectsMarkdown is the same as a table for a page.
func printEffectsMarkdown(out io.Writer, contender string, j tune.Judgement) {
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(effectHeader, " | "), strings.Repeat("---|", len(effectHeader)))
	for _, e := range j.Effects {
		row := effectRow(contender, e)
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
	if text := caveat(j); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
}

// caveat is what a reader of verdicts must know of their number; "" where
// nothing was compared.
func caveat(j tune.Judgement) string {
	if j.Comparisons == 0 {
		return ""
	}
	return fmt.Sprintf("Corrected for all %s of the run (Holm): the chance that any helped or hurt is an accident is 5 %%. It takes at least %s to show one.",
		unit.Plural(j.Comparisons, "comparison"), unit.Plural(j.LeastRounds, "round"))
}

func ratioWords(e tune.Effect) string {
	if e.CI == nil {
		return unit.Ratio(e.Ratio) + "×"
	}
	return fmt.Sprintf("%s× (%s–%s)", unit.Ratio(e.Ratio), unit.Ratio(e.CI[0]), unit.Ratio(e.CI[1]))
}
