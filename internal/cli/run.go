package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/suite"
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

	nodes               string // a number (lab), or names (kube)
	underlay, mtu, line string
	offload             string
	services            []int
	congestion, cpus    string
	cniConf, cniJoin    string
	cniText             string // of cniConf

	kube   kubeFlags
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

With --arena kube a cluster is measured as it is: contender this-cluster is its
pod network, host the same from host network to host network. Everything is in
one namespace, which is removed at the end; docs/kubernetes.md says more.

What the running kernel lacks runs in the same lab inside a QEMU guest with
another kernel and a baseline of its own, in DIR/microvm, reported beside the
rest and never compared with it. --arena lab leaves that out.`),
		Example: `  cnibench run
  cnibench run --suite throughput --contenders host,flannel-vxlan,calico-noencap --rounds 6
  cnibench run --suite latency --rates auto --mtu 9000 --line-rate 10G
  cnibench run --cni-conf mynet.conflist --contenders host,custom
  cnibench run --arena kube --image registry.example/cnibench:1.0
  cnibench run --resume cnibench-run-20260102-030405`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRun(c, f) },
	}
	addArena(c, &f.arena, "where to run: auto (natively what this kernel can, the rest in a guest), lab (natively), microvm (all in a guest) or kube (a cluster)")
	fl := c.Flags()
	fl.StringVar(&f.suite, "suite", "quick", "suite to run; see `cnibench list suites`")
	fl.StringVar(&f.contenders, "contenders", "supported", "`a,b`, or supported: all that can run here (the others are named with the reason; all is the same); the baseline is added")
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
	addNodes(c, &f.nodes)
	fl.StringVar(&f.underlay, "underlay", lab.UnderlayAuto, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.mtu, "mtu", "1500", "MTU of the underlay, bytes; in a cluster that of the nodes, which nothing is changed of")
	fl.StringVar(&f.line, "line-rate", "", "lab: shape each node's link to this rate, e.g. 10G (default: unlimited); kube: the rate that the nodes' links have")
	fl.StringVar(&f.offload, "offload", lab.OffloadHost, "lab: how frames cross the underlay: host (unsegmented, as veth hands them over; flatters TCP) or wire (each at most an MTU)")
	fl.IntSliceVar(&f.services, "services", nil, "other Services beside the one that steps of the path service go through, e.g. 1,100,10000; each count in turn (default: the suite's, else 1)")
	fl.StringVar(&f.congestion, "congestion-control", lab.CongestionAuto, "lab: TCP congestion control in every namespace; auto is cubic, or reno where cubic is not allowed")
	fl.StringVar(&f.cpus, "cpus", "", "lab: CPUs of the client, the server and the rest, e.g. client=0-1,server=2-3,rest=4+5")
	fl.StringVar(&f.cniConf, "cni-conf", "", "lab: run the CNI configuration in `FILE` as contender \"custom\"; \"usePodCidr\" stands for the node's pod subnet")
	fl.StringVar(&f.cniJoin, "cni-transport", "routes", "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	f.addGuestFlags(c)
	f.kube.addConnection(c)
	f.kube.addPods(c)
	f.kube.addInstall(c)
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
	return job.ground.lead(c, job)
}

// givenFlags are the names of the command line's flags.
func givenFlags(c *cobra.Command) map[string]bool {
	given := map[string]bool{}
	c.Flags().Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	return given
}

// check finds wrong usage before anything is made.
func (f *runFlags) check(c *cobra.Command) error {
	f.given = givenFlags(c)
	if _, err := findArena(f.arena); err != nil {
		return err
	}
	if f.checks != "" {
		if _, err := check.Named(f.checks); err != nil {
			return err
		}
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
		return keepsPlan(c, planFlags)
	}
	if f.partOf != "" {
		return nil // its plan and its place are that run's
	}
	if f.out == "" {
		f.out = "cnibench-run-" + time.Now().Format("20060102-150405")
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

// planFlags are in the plan of every run and can't change on resume.
var planFlags = []string{"suite", "contenders", "check", "rounds", "duration", "warmup", "seed", "out", "rates", "baseline", "services"}

// dir is the run directory, or empty for a part, which is in that of the whole.
func (f *runFlags) dir() string {
	if f.partOf != "" {
		return ""
	}
	return cmp.Or(f.resume, f.out)
}

// commonSettings are the flags that every arena's plan remembers.
var commonSettings = []string{"services", "rates", "check"}

// settings is what the plan remembers of the flags.
func (f *runFlags) settings() map[string]string {
	s := map[string]string{}
	if row, err := findArena(f.arena); err == nil {
		s = row.recorded(f)
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
	return s
}

// adopt takes flags of a plan back, unless the command line has them. Nobody
// who wrote the plan sets any other flag by it.
func (f *runFlags) adopt(c *cobra.Command, settings map[string]string) error {
	row, err := findArena(f.arena)
	if err != nil {
		return err
	}
	for flag, value := range settings {
		switch {
		case flag == cniTextKey:
			f.cniText = value
			continue
		case !row.isSetting(flag):
			return fmt.Errorf("the run was made with a setting that this version does not know: %s", flag)
		case f.given[flag]:
			continue
		}
		if err := c.Flags().Set(flag, value); err != nil {
			return fmt.Errorf("setting %s of the run: %w", flag, err)
		}
	}
	_, err = f.guest.vm().check()
	return err
}
