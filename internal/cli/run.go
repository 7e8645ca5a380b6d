package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/study"
)

// runFlags is the command line of `cnibench run`.
type runFlags struct {
	run.Request
	plan   bool          // say what would be done, and stop
	config string        // file of flags
	repeat int           // number of runs
	spread time.Duration // from the begin of a run to that of the next
}

func newRunCmd() *cobra.Command { return (&runFlags{Request: run.NewRequest()}).command() }

// command is the command line that sets the flags.
func (f *runFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Compare pod networks: run a suite over contenders and write a run directory",
		Long: strings.TrimSpace(`
Compares pod networks and prints which are faster or cheaper, and which cannot be told apart.
Each round builds the network of every contender from nothing, measures it step by step and
removes it. Prints a table and writes DIR/report.html.

The lab works in namespaces of its own. It does not touch the host's interfaces, routes,
firewall and sysctls, and leaves nothing behind, not even after kill -9. It needs no root if
the kernel lets users make namespaces.

With --arena kube it measures a cluster as it is: contender this-cluster is the
cluster's pod network, host the nodes' own network. It makes everything in one namespace and
removes that at the end; docs/kubernetes.md says more.

A run has one kernel. It leaves out contenders that need another kernel, and first prints the
command that measures them: a run with --arena microvm, in a QEMU guest with another kernel
and a baseline of its own.`),
		Example: `  cnibench run
  cnibench run --suite throughput --contenders host,flannel-vxlan,calico-noencap --rounds 6
  cnibench run --suite latency --rates auto --mtu 9000 --line-rate 10G
  cnibench run --study 2016
  cnibench run --repeat 3 --spread 1h
  cnibench run --cni-conf mynet.conflist --contenders host,custom
  cnibench run --arena kube --max-rate 500M
  cnibench run --arena kube --context old,new
  cnibench run --resume cnibench-run-20260102-030405`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRun(c, f) },
	}
	addArena(c, &f.Arena, "where to run: auto (this machine; a study also in a guest, what this kernel cannot), lab (this machine alone), microvm (in a guest with another kernel) or kube (a cluster)")
	fl := c.Flags()
	fl.StringVar(&f.Suite, "suite", f.Suite, "`suite` to run, see cnibench list suites; or a FILE.yaml of your own in the same form")
	fl.StringVar(&f.Study, "study", "", "repeat a published `study`: its suite, contenders, settings and pictures; see cnibench list studies. Other flags override its settings")
	fl.StringVar(&f.Scale, "scale", study.Machine, "with --study: machine (sized for this machine, at most 45 minutes on 2 CPUs) or published (the published rates, rounds and durations)")
	fl.StringSliceVar(&f.Steps, "steps", nil, "only these `steps` of the suite, e.g. dts,http-* (default: all)")
	fl.StringArrayVar(&f.Changes, "set", nil, "change a parameter of the suite: `STEP.PARAMETER=VALUE`, e.g. http-*.threads=18; see cnibench list workloads; may be repeated")
	fl.StringVar(&f.Contenders, "contenders", f.Contenders, "contenders `a,b` to compare; supported or all: those that can run here (the run names the others and why). The baseline is added")
	fl.IntVar(&f.Rounds, "rounds", 0, fmt.Sprintf("`number` of passes over all contenders and steps (default: from the suite, or enough to distinguish the contenders: %d for two, %d for nine)",
		stat.RoundsToTellApart(2), stat.RoundsToTellApart(9)))
	fl.StringVar(&f.Until, "until", "", "end when the interval of every ratio is at most this many `percent` wide to each side, e.g. 5%; 0%: measure all rounds (default: from the suite, or 0% with --rounds)")
	fl.DurationVar(&f.MaxTime, "max-time", 0, "stop within this time, but not before the first round has ended (default: from the suite; none with --rounds)")
	fl.DurationVar(&f.Duration, "duration", 0, "measured time of each step (default: from the suite)")
	fl.DurationVar(&f.Slice, "slice", f.Slice, "`length` of a turn: all contenders stay up and take turns (200ms in a cluster and with an emulated CPU); 0: measure one contender after the other")
	fl.DurationVar(&f.Warmup, "warmup", 0, "time under load before the measured time; no figure includes it (default: from the suite)")
	fl.IntVar(&f.repeat, "repeat", 1, "make so many `runs`, into OUT/1, OUT/2, …: from three on the report says where another run's ratios would lie")
	fl.DurationVar(&f.spread, "spread", 0, "with --repeat: begin each run so long after the one before, e.g. 1h, so that hours differ")
	fl.Uint64Var(&f.Seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.Out, "out", "", "run `directory` to write (default: cnibench-run-TIME)")
	fl.StringVar(&f.Resume, "resume", "", "continue the interrupted run in `DIR`; finished samples are not repeated")
	fl.StringVar(&f.Rates, "rates", f.Rates, "request rates: auto (shares of what the machine sustains) or given (the numbers in the suite)")
	fl.StringVar(&f.RatesFrom, "rates-from", "", "use the request rates of the run in `DIR`, so that the two runs can be compared")
	fl.StringVar(&f.MaxRate, "max-rate", "", "limit of the payload that a step sends, in `bit/s`, e.g. 500M; steps that cannot keep to it are left out; 0: no limit (default: none; in a cluster with --line-rate, 80% of that rate for bulk steps)")
	fl.BoolVar(&f.Keep, "keep", false, "lab: keep the last contender up until Ctrl-C, for cnibench enter")
	fl.StringVar(&f.Checks, "check", "", "`checks` of every contender before the first round: mtu,encryption or all; the run keeps the results; see cnibench list checks")
	fl.StringVar(&f.Baseline, "baseline", f.Baseline, "contender with which all others are compared")
	clusterflags.AddNodes(c, &f.Nodes)
	fl.StringVar(&f.Underlay, "underlay", f.Underlay, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.MTU, "mtu", f.MTU, "MTU of the underlay in `bytes`: a lab sets it; for a cluster, the MTU that the nodes have")
	fl.StringVar(&f.PodMTU, "pod-mtu", "", "lab: MTU of the pods in `bytes` (default: the contender's own, else --mtu without the encapsulation)")
	fl.StringVar(&f.LineRate, "line-rate", "", "`rate` of each node's link, e.g. 10G: a lab limits its links to it (default: unlimited); for a cluster, the rate that the links have")
	fl.StringVar(&f.Offload, "offload", f.Offload, "lab: how frames cross the underlay: host (unsegmented, as veth passes them; favours TCP) or wire (each at most an MTU long)")
	fl.IntSliceVar(&f.Services, "services", nil, "`numbers` of other Services, each in turn, e.g. 1,100,10000, for steps of the path service (default: from the suite, else 1)")
	fl.StringVar(&f.Congestion, "congestion-control", f.Congestion, "lab: TCP congestion control in every namespace; auto is cubic, or reno if cubic is not allowed")
	fl.StringVar(&f.CPUs, "cpus", "", "lab: CPUs of the client, the server and the rest, e.g. client=0-1,server=2-3,rest=4+5")
	fl.StringVar(&f.CNIConf, "cni-conf", "", "lab: run the CNI configuration in `FILE` as contender \"custom\"; \"usePodCidr\" stands for the node's pod subnet")
	fl.StringVar(&f.CNITransport, "cni-transport", f.CNITransport, "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	fl.BoolVar(&f.plan, "plan", false, "print what the run would do and make, and do nothing")
	addConfig(c, &f.config)
	addGuest(c, &f.Request)
	clusterflags.AddConnection(c, &f.Cluster)
	contextHelp(c)
	clusterflags.AddPods(c, &f.Cluster)
	c.Flags().BoolVar(&f.Cluster.Anonymous, "anonymous", false, "kube: keep the names of nodes out of the run directory, e.g. to publish it; reports then say node1 and node2")
	clusterflags.AddInstall(c, &f.Cluster)
	completeRunFlags(c)
	return c
}

func runRun(c *cobra.Command, f *runFlags) error {
	if err := applyConfig(c, f.config); err != nil {
		return err
	}
	if err := applyStudy(c, f); err != nil {
		return err
	}
	f.from(c)
	switch {
	case f.repeat != 1 || f.spread != 0:
		return f.runRepeats(c)
	case strings.Contains(f.Cluster.Context, ","):
		return f.runContexts(c)
	case f.Study != "":
		return f.runKernels(c)
	}
	return f.runOnce(c)
}

// from completes the request with what the command line is and has set.
func (f *runFlags) from(c *cobra.Command) {
	f.Given, f.Tool = cmdutil.GivenFlags(c), tool()
}

// runOnce makes one run.
func (f *runFlags) runOnce(c *cobra.Command) error {
	job, err := f.Prepare()
	switch {
	case err != nil:
		return err
	case f.plan:
		return job.WritePlan(c.OutOrStdout())
	case f.Resume == "":
		job.WarnOfNoise(c.ErrOrStderr())
	}
	return job.Lead(c.Context(), c.OutOrStdout())
}

// prepare prepares several runs before the first begins. With --plan it prints the plans of the
// first of them, as many as plans says.
func (f *runFlags) prepare(c *cobra.Command, runs []*runFlags, plans int) (jobs []*run.Job, err error) {
	for i, one := range runs {
		job, err := one.Prepare()
		if err == nil && f.plan && i < plans {
			err = job.WritePlan(c.OutOrStdout())
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	if !f.plan {
		jobs[0].WarnOfNoise(c.ErrOrStderr())
	}
	return jobs, nil
}

// addGuest adds the flags of a guest to a command that has --arena microvm.
func addGuest(c *cobra.Command, f *run.Request) {
	fl, g := c.Flags(), &f.Guest
	fl.StringVar(&g.Kernel, "kernel", "", "microvm: `version` or image, as for cnibench vm (default "+vm.DefaultVersion+")")
	fl.StringVar(&g.Modules, "modules", "", "microvm: lib/modules/RELEASE `folder` of a kernel given by path")
	fl.StringVar(&g.Accel, "accel", vm.AccelAuto, "microvm: auto, kvm or tcg")
	fl.IntVar(&g.CPUs, "vm-cpus", 0, "microvm: CPUs of the guest (default: as cnibench vm chooses)")
	fl.StringVar(&g.Memory, "vm-memory", g.Memory, "microvm: memory of the guest")
}

// addArena adds --arena to a command. A plugin of kubectl means the cluster.
func addArena(c *cobra.Command, value *string, help string) {
	usual := run.Auto
	if cmdutil.IsPlugin() {
		usual = run.Kube
	}
	c.Flags().StringVar(value, "arena", usual, help)
	_ = c.RegisterFlagCompletionFunc("arena", cobra.FixedCompletions(run.Arenas(), cobra.ShellCompDirectiveNoFileComp))
}
