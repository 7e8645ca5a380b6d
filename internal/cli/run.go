package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/unit"
)

// runFlags is the command line of `cnibench run`.
type runFlags struct {
	suite, contenders, arena string
	rounds                   int
	duration, warmup         time.Duration
	seed                     uint64
	out, resume              string
	rates                    string
	keep                     bool
	baseline, checks         string

	nodes               int
	underlay, mtu, line string
	offload             string
	services            []int
	congestion, cpus    string
	cniConf, cniJoin    string
	cniText             string // of cniConf

	guest  guestFlags
	partOf string // the run whose remaining contenders are run; else empty

	given map[string]bool // flags of the command line, before a plan is taken back
}

func newRunCmd() *cobra.Command { return new(runFlags).command() }

// command is the command line that sets the flags.
func (f *runFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Compare pod networks: run a suite over contenders and write a run directory",
		Long: strings.TrimSpace(`
Compares pod networks. For every round and contender, in shuffled order, the
network is built from nothing, measured step by step, and thrown away. Prints a
table and writes DIR/report.html.

In the lab everything happens in namespaces of its own: the
host's interfaces, routes, firewall and sysctls are not touched, and nothing is
left behind, not even after kill -9. Root is not needed where the kernel lets
users have namespaces.

What the running kernel lacks runs in the same lab inside a QEMU guest with
another kernel and a baseline of its own, in DIR/microvm, reported beside the
rest and never compared with it. --arena lab leaves that out.`),
		Example: `  cnibench run
  cnibench run --suite throughput --contenders host,flannel-vxlan,calico-noencap --rounds 6
  cnibench run --suite latency --rates auto --mtu 9000 --line-rate 10G
  cnibench run --cni-conf mynet.conflist --contenders host,custom
  cnibench run --resume cnibench-run-20260102-030405`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRun(c, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.suite, "suite", "quick", "suite to run; see `cnibench list suites`")
	fl.StringVar(&f.contenders, "contenders", "supported", "`a,b`, or supported: all that can run here (the others are named with the reason; all is the same); the baseline is added")
	fl.StringVar(&f.arena, "arena", "auto", "where to run: auto (natively what this kernel can, the rest in a guest), lab (natively) or microvm (all in a guest)")
	fl.IntVar(&f.rounds, "rounds", 0, "passes over all contenders and steps (default: the suite's)")
	fl.DurationVar(&f.duration, "duration", 0, "measured window of each step (default: the suite's)")
	fl.DurationVar(&f.warmup, "warmup", 0, "load before the window, excluded from every figure (default: the suite's)")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.out, "out", "", "run `directory` to write (default: cnibench-run-TIME)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run in `DIR`; what is sealed is not repeated")
	fl.StringVar(&f.rates, "rates", "auto", "rates of ladders: auto (shares of what the machine sustains) or given (the study's)")
	fl.BoolVar(&f.keep, "keep", false, "keep the last contender up until Ctrl-C, for `cnibench enter`; what needs a guest is left out")
	fl.StringVar(&f.checks, "check", "", "`checks` to carry out on every contender before the first round, kept with the run: mtu,encryption or all; see cnibench list checks")
	fl.StringVar(&f.baseline, "baseline", "host", "contender that every other is compared with")
	fl.IntVar(&f.nodes, "nodes", 2, "lab: machines of the cluster")
	fl.StringVar(&f.underlay, "underlay", lab.UnderlayAuto, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.mtu, "mtu", "1500", "lab: MTU of the underlay, bytes")
	fl.StringVar(&f.line, "line-rate", "", "lab: shape each node's link to this rate, e.g. 10G (default: unlimited)")
	fl.StringVar(&f.offload, "offload", lab.OffloadHost, "lab: how frames cross the underlay: host (unsegmented, as veth hands them over; flatters TCP) or wire (each at most an MTU)")
	fl.IntSliceVar(&f.services, "services", nil, "other Services beside the one that steps of the path service go through, e.g. 1,100,10000; each count in turn (default: the suite's, else 1)")
	fl.StringVar(&f.congestion, "congestion-control", lab.CongestionAuto, "lab: TCP congestion control in every namespace; auto is cubic, or reno where cubic is not allowed")
	fl.StringVar(&f.cpus, "cpus", "", "lab: CPUs of the client, the server and the rest, e.g. client=0-1,server=2-3,rest=4+5")
	fl.StringVar(&f.cniConf, "cni-conf", "", "lab: run the CNI configuration in `FILE` as contender \"custom\"; \"usePodCidr\" stands for the node's pod subnet")
	fl.StringVar(&f.cniJoin, "cni-transport", "routes", "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	f.addGuestFlags(c)
	completeRunFlags(c)
	return c
}

func runRun(c *cobra.Command, f *runFlags) error {
	if err := f.check(c); err != nil {
		return err
	}
	job, err := f.job(c)
	if err != nil {
		return err
	}
	if !lab.Contained() {
		return job.lead(c)
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	job.contained = true
	ctx, stop := signal.NotifyContext(c.Context(), lab.EndSignals()...)
	defer stop()
	return job.run(ctx, c)
}

// contain runs this same command line inside the lab's container and ends
// with its exit code.
func contain(ctx context.Context) error {
	log := logger(os.Stderr)
	code, err := lab.Contain(ctx, func(format string, args ...any) { log.Error(fmt.Sprintf(format, args...)) })
	if err != nil {
		return err
	}
	if code != exitDone {
		return &exitError{code, nil}
	}
	return nil
}

// check finds wrong usage before anything is made.
func (f *runFlags) check(c *cobra.Command) error {
	f.given = map[string]bool{}
	c.Flags().Visit(func(flag *pflag.Flag) { f.given[flag.Name] = true })
	switch f.arena {
	case "auto", "lab":
	case arenaMicroVM:
		if f.keep {
			return errKeptGuest
		}
	case "kube":
		return &exitError{exitUnsupported, fmt.Errorf("arena %s: this version has the arenas lab and microvm only; run with --arena lab", f.arena)}
	default:
		return nearest.Unknown("arena", f.arena, []string{"auto", "lab", arenaMicroVM})
	}
	if f.checks != "" {
		if _, err := check.Named(f.checks); err != nil {
			return err
		}
	}
	if _, err := f.guest.vm().check(); err != nil {
		return err
	}
	if f.rates != "auto" && f.rates != "given" {
		return usage("--rates %q: want auto or given", f.rates)
	}
	for flag, wrong := range map[string]bool{
		"rounds":   c.Flags().Changed("rounds") && f.rounds < 1,
		"duration": c.Flags().Changed("duration") && f.duration < 100*time.Millisecond,
		"warmup":   f.warmup < 0,
	} {
		if wrong {
			return usage("--%s %s: too small", flag, c.Flag(flag).Value)
		}
	}
	if f.resume != "" {
		for _, flag := range planFlags {
			if c.Flags().Changed(flag) {
				return usage("--%s: a resumed run keeps its plan; leave it out, or start a new run", flag)
			}
		}
		return hidden(f.resume)
	}
	if f.partOf != "" {
		return nil // its plan and its place are that run's
	}
	if f.out == "" {
		f.out = "cnibench-run-" + time.Now().Format("20060102-150405")
	}
	if err := hidden(f.out); err != nil {
		return err
	}
	if lab.Contained() {
		return nil
	}
	if entries, err := os.ReadDir(f.out); err == nil && len(entries) > 0 {
		return usage("%s exists and is not empty; choose another --out, or go on with it: cnibench run --resume %s", f.out, f.out)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return usage("--out %s: %v", f.out, err)
	}
	return nil
}

// planFlags are recorded in the plan and can't change on resume.
var planFlags = []string{
	"suite", "contenders", "check", "rounds", "duration", "warmup", "seed", "out", "rates", "baseline", "nodes", "underlay", "mtu",
	"line-rate", "offload", "services", "congestion-control", "cpus", "cni-conf", "cni-transport",
}

// hidden refuses a folder that the lab can't write through to the disk.
func hidden(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if lab.HidesPath(abs) {
		return usage("%s: the lab has an empty %s of its own; choose a run directory elsewhere", dir, lab.RunDir)
	}
	return nil
}

// labOptions reads the lab's flags.
func (f *runFlags) labOptions() (lab.Options, error) {
	o := lab.Options{Nodes: f.nodes, Underlay: f.underlay, Offload: f.offload, Congestion: f.congestion, CNIPath: cniPath()}
	mtu, err := unit.ParseBytes(f.mtu)
	if err != nil {
		return o, usage("--mtu: %v", err)
	}
	o.MTU = int(mtu)
	if f.line != "" {
		if o.LineRate, err = unit.ParseBitRate(f.line); err != nil {
			return o, usage("--line-rate: %v", err)
		}
	}
	if o.CPUs, err = lab.ParsePlacement(f.cpus, lab.CPUs()); err != nil {
		return o, usage("%v", err)
	}
	f.cpus = o.CPUs.String() // what the plan remembers: which CPUs were whose
	if f.cniConf != "" {
		if o.Custom, err = f.custom(); err != nil {
			return o, usage("--cni-conf: %v", err)
		}
	}
	if err := o.Check(); err != nil {
		return o, usage("%v", err)
	}
	return o, nil
}

// custom is the user's own configuration; a resumed run keeps the text that it
// was started with.
func (f *runFlags) custom() (*lab.CustomAttach, error) {
	join := f.cniJoin
	if join == "none" {
		join = ""
	}
	if f.cniText == "" {
		raw, err := os.ReadFile(f.cniConf)
		if err != nil {
			return nil, err
		}
		f.cniText = string(raw)
	}
	return lab.NewCustom(f.cniConf, []byte(f.cniText), join)
}

// cniPath is CNI_PATH, as for other runtimes, or the usual folders.
func cniPath() []string {
	if p := os.Getenv("CNI_PATH"); p != "" {
		return filepath.SplitList(p)
	}
	return lab.DefaultCNIPath
}

// cniTextKey is the setting that holds the text of --cni-conf's file.
const cniTextKey = "cni-conf-text"

// labSettings are the lab's flags that a plan remembers.
var labSettings = []string{
	"nodes", "underlay", "mtu", "line-rate", "congestion-control", "cpus", "offload", "services", "rates", "check", "cni-conf", "cni-transport",
}

// settings is what the plan remembers of the flags.
func (f *runFlags) settings() map[string]string {
	s := map[string]string{
		"nodes": fmt.Sprint(f.nodes), "underlay": f.underlay, "mtu": f.mtu, "line-rate": f.line,
		"congestion-control": f.congestion, "cpus": f.cpus, "offload": f.offload,
	}
	if f.checks != "" {
		s["check"] = f.checks
	}
	if f.rates != suite.RatesAuto {
		s["rates"] = f.rates
	}
	if len(f.services) > 0 {
		s["services"] = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.services)), ","), "[]")
	}
	if f.cniConf != "" {
		s["cni-conf"], s["cni-transport"], s[cniTextKey] = f.cniConf, f.cniJoin, f.cniText
	}
	maps.Copy(s, f.guest.settings())
	return s
}

// adopt takes flags of a plan back, unless the command line has them. Nobody
// who wrote the plan sets any other flag by it.
func (f *runFlags) adopt(c *cobra.Command, settings map[string]string) error {
	for flag, value := range settings {
		switch {
		case flag == cniTextKey:
			f.cniText = value
			continue
		case !slices.Contains(labSettings, flag) && !slices.Contains(guestSettings, flag):
			return fmt.Errorf("the run was made with a setting that this version does not know: %s", flag)
		case f.given[flag]:
			continue
		}
		if err := c.Flags().Set(flag, value); err != nil {
			return fmt.Errorf("setting %s of the run: %w", flag, err)
		}
	}
	_, err := f.guest.vm().check()
	return err
}
