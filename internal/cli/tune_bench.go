package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/result"
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
through the journal of tune apply. The run directory is one like any other:
cnibench report DIR shows it again.`),
		Example: `  cnibench tune bench --contender calico-vxlan offloads
  cnibench tune bench --contender flannel-vxlan --profile study-2016 --rounds 10
  cnibench tune bench --contender host --step dts --sysctl net.ipv4.tcp_rmem=4096,4096,4096`,
		RunE: func(c *cobra.Command, args []string) error { return runTuneBench(c, &f, args) },
	}
	f.choose(c)
	fl := c.Flags()
	fl.StringVar(&f.contender, "contender", "", "contender to tune (required); see `cnibench list contenders`")
	fl.StringSliceVar(&f.steps, "step", nil, "only these `steps` of the suite")
	fl.BoolVar(&f.machine, "machine", false, "apply settings that are the whole machine's, too, during each visit (needs root)")
	fl.BoolVar(&f.asJSON, "json", false, "print the verdicts as JSON")
	fl.BoolVar(&f.markdown, "markdown", false, "print the verdicts as a Markdown table")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	fl.StringVar(&f.run.suite, "suite", "quick", "suite to run; see `cnibench list suites`")
	fl.StringVar(&f.run.arena, "arena", "auto", "where to run: auto or lab")
	fl.IntVar(&f.run.rounds, "rounds", 0, "passes over all settings and steps (default: the suite's)")
	fl.DurationVar(&f.run.duration, "duration", 0, "measured window of each step (default: the suite's)")
	fl.DurationVar(&f.run.warmup, "warmup", 0, "load before the window (default: the suite's)")
	fl.Uint64Var(&f.run.seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.run.out, "out", "", "run `directory` to write (default: cnibench-tune-TIME)")
	fl.IntVar(&f.run.nodes, "nodes", 2, "lab: machines of the cluster")
	fl.StringVar(&f.run.mtu, "mtu", "1500", "lab: MTU of the underlay, bytes")
	fl.StringVar(&f.run.line, "line-rate", "", "lab: shape each node's link to this rate (default: unlimited)")
	fl.StringVar(&f.run.congestion, "congestion-control", lab.CongestionAuto, "lab: TCP congestion control in every namespace")
	fl.StringVar(&f.run.cpus, "cpus", "", "lab: CPUs of the client, the server and the rest")
	f.run.underlay, f.run.rates, f.run.cniJoin = lab.UnderlayAuto, "auto", "routes"
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
	req, err = f.benchable(req)
	if err != nil {
		return err
	}
	if f.run.out == "" {
		f.run.out = "cnibench-tune-" + time.Now().Format("20060102-150405")
	}
	f.run.contenders, f.run.baseline = f.contender, f.contender
	if err := f.run.check(c); err != nil {
		return err
	}
	j, err := f.run.job(c)
	if err != nil {
		return err
	}
	if err := keepSteps(&j.plan, f.steps); err != nil {
		return err
	}
	variants, err := f.enlist(j, req)
	if err != nil {
		return err
	}
	if !lab.Contained() {
		return contain(c.Context())
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), lab.EndSignals()...)
	defer stop()
	j.wrap = func(a arena.Arena) (arena.Arena, error) { return f.wrap(a, variants) }
	// The run's own table would say the same at greater length.
	out := c.OutOrStdout()
	c.SetOut(io.Discard)
	runErr := j.run(ctx, c)
	c.SetOut(out)
	if f.journal != nil {
		runErr = errors.Join(runErr, f.journal.Close())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; what was measured until then: cnibench report %s", f.run.out)
	}
	if runErr != nil {
		return runErr
	}
	return f.judge(out, variants)
}

// workloadPorts are those of the suites' servers, and of VXLAN around them.
const workloadPorts = "2121,4789,5201-5216,7000,8080,8443,8472,19765"

// benchable leaves settings out that nothing can be measured of, and refuses
// when none is left.
func (f *tuneBenchFlags) benchable(req tune.Request) (tune.Request, error) {
	var kept []tune.Choice
	var left []string
	for _, choice := range req.Settings {
		s, err := tune.Lookup(choice.Setting)
		if err != nil {
			return req, err
		}
		switch {
		case s.Scope == tune.ScopeMachine && !f.machine:
			left = append(left, s.Name)
		case s.Name == "notrack" && choice.Params["ports"] == "":
			kept = append(kept, tune.Choice{Setting: s.Name, Params: tune.Params{"ports": workloadPorts}})
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
		return req, &arena.Unsupported{
			Reason: fmt.Sprintf("%s: the whole machine's, a lab's namespaces have none of their own", strings.Join(left, ", ")),
			Remedy: "measure with --machine",
		}
	}
	if len(req.Names()) == 0 {
		return req, usage("nothing to measure: name settings, or a --profile; `cnibench list tunings` shows them")
	}
	if len(left) > 0 && !lab.Contained() {
		fmt.Fprintf(os.Stderr, "left out, because they are the whole machine's (--machine measures them): %s\n", strings.Join(left, ", "))
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
		kept = append(kept, s)
	}
	p.Steps = kept
	return nil
}

// enlist adds the variants to what the job runs.
func (f *tuneBenchFlags) enlist(j *job, req tune.Request) ([]tune.Variant, error) {
	base, err := j.catalogue.contender(f.contender)
	if err != nil {
		return nil, err
	}
	variants := tune.Variants(f.contender, req)
	for _, v := range variants {
		j.catalogue.contenders = append(j.catalogue.contenders, v.Contender(base))
		j.wanted = append(j.wanted, v.ID)
	}
	// A later version that reads the plan must not take it for a plain run's.
	j.plan.Settings["tune"] = strings.Join(req.Names(), ",")
	return variants, nil
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
	f.journal = b.Journal
	return b, err
}

// judge prints what the settings did.
func (f *tuneBenchFlags) judge(out io.Writer, variants []tune.Variant) error {
	rec, err := result.Load(f.run.out)
	if err != nil {
		return err
	}
	r := assemble(f.run.out, rec, analysis.Options{})
	effects := tune.Judge(r, variants, tune.NothingSetBy(rec.Samples, variants))
	if f.asJSON {
		return printJSON(out, map[string]any{"schema": "cnibench/tune-bench/1", "run": f.run.out, "contender": f.contender, "effects": effects})
	}
	if f.markdown {
		printEffectsMarkdown(out, f.contender, effects)
		return nil
	}
	printEffects(out, f.contender, effects)
	fmt.Fprintf(out, "\nReport: %s/report.html\n", f.run.out)
	return nil
}

var effectHeader = []string{"Setting", "Step", "Figure", "Without", "With", "Ratio", "Verdict"}

// effectRow is an effect in words.
func effectRow(contender string, e tune.Effect) []string {
	name := strings.TrimPrefix(e.Variant, contender+"+")
	verdict := string(e.Verdict)
	if e.Reason != "" {
		verdict += ": " + e.Reason
	}
	if e.Verdict == tune.NoData {
		return []string{name, e.Step, "", "", "", "", verdict}
	}
	return []string{name, e.Step, e.Metric, unit.Format(e.Before, e.Unit), unit.Format(e.After, e.Unit), ratioWords(e), verdict}
}

// printEffects is the verdicts for people.
func printEffects(out io.Writer, contender string, effects []tune.Effect) {
	var rows [][]string
	told, different := 0, false
	for _, e := range effects {
		if e.CI != nil {
			told++
		}
		different = different || e.Verdict == tune.Helped || e.Verdict == tune.Hurt
		rows = append(rows, effectRow(contender, e))
	}
	fmt.Fprintf(out, "%s without settings and with them; ratios are paired within rounds, with 95 %% intervals\n", contender)
	printTable(out, effectHeader, rows)
	if different {
		fmt.Fprintf(out, "\nOf %s at 95 %%, about %.1f look like a difference by chance alone: repeat what matters with more rounds.\n", unit.Plural(told, "comparison"), 0.05*float64(told))
	}
}

// printEffectsMarkdown is the same as a table for a page.
func printEffectsMarkdown(out io.Writer, contender string, effects []tune.Effect) {
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(effectHeader, " | "), strings.Repeat("---|", len(effectHeader)))
	for _, e := range effects {
		fmt.Fprintf(out, "| %s |\n", strings.Join(effectRow(contender, e), " | "))
	}
}

func ratioWords(e tune.Effect) string {
	if e.CI == nil {
		return unit.Ratio(e.Ratio) + "×"
	}
	return fmt.Sprintf("%s× (%s–%s)", unit.Ratio(e.Ratio), unit.Ratio(e.CI[0]), unit.Ratio(e.CI[1]))
}
