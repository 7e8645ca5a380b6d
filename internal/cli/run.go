package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/study"
)

// runFlags is the command line of `cnibench run`.
type runFlags struct {
	run.Request
	plan   bool   // say what would be done, and stop
	config string // file of flags
}

func newRunCmd() *cobra.Command { return (&runFlags{Request: run.NewRequest()}).command() }

// command is the command line that sets the flags.
func (f *runFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Compare pod networks: run a suite over contenders and write a run directory",
		Long: strings.TrimSpace(`
Compares pod networks and says which are faster, cheaper, or cannot be told apart. In
each round the network of every contender is built from nothing, measured step by step,
and removed. Prints a table and writes DIR/report.html.

In the lab everything happens in namespaces of its own: the
host's interfaces, routes, firewall and sysctls are not touched, and nothing is
left behind, not even after kill -9. Root is not needed where the kernel lets
users have namespaces.

With --arena kube it measures a cluster as it is: contender this-cluster is the
cluster's pod network, host the nodes' own network. Everything that it makes is in one
namespace, which is removed at the end; docs/kubernetes.md says more.

A run has one kernel. Contenders that need more than the running kernel has are left out,
and the run first says with which command they are measured: a run in a QEMU guest with
another kernel and a baseline of its own, --arena microvm.`),
		Example: `  cnibench run
  cnibench run --suite throughput --contenders host,flannel-vxlan,calico-noencap --rounds 6
  cnibench run --suite latency --rates auto --mtu 9000 --line-rate 10G
  cnibench run --study 2016
  cnibench run --cni-conf mynet.conflist --contenders host,custom
  cnibench run --arena kube --image registry.example/cnibench:1.0
  cnibench run --arena kube --context old,new --image registry.example/cnibench:1.0
  cnibench run --resume cnibench-run-20260102-030405`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRun(c, f) },
	}
	addArena(c, &f.Arena, "where to run: auto (this machine; a study also in a guest, what this kernel can't), lab (this machine alone), microvm (in a guest with another kernel) or kube (a cluster)")
	fl := c.Flags()
	fl.StringVar(&f.Suite, "suite", f.Suite, "`suite` to run, see cnibench list suites; or a FILE.yaml of your own, written as the project's suites are")
	fl.StringVar(&f.Study, "study", "", "repeat a published `study`: its suite, contenders, settings and pictures; see cnibench list studies. Other flags override the study's")
	fl.StringVar(&f.Scale, "scale", study.Machine, "with --study: machine (what this machine carries, in at most 45 minutes on 2 CPUs) or published (rates, rounds and durations as published)")
	fl.StringSliceVar(&f.Steps, "steps", nil, "only these `steps` of the suite, e.g. dts,http-* (default: all)")
	fl.StringArrayVar(&f.Changes, "set", nil, "change a parameter of the suite: `STEP.PARAMETER=VALUE`, e.g. http-*.threads=18; see cnibench list workloads; may be given again")
	fl.StringVar(&f.Contenders, "contenders", f.Contenders, "contenders `a,b` to compare; supported or all: those that can run here (the run names the others, with the reason). The baseline is added")
	fl.IntVar(&f.Rounds, "rounds", 0, fmt.Sprintf("`number` of passes over all contenders and steps (default: the suite's, else what it takes to tell the contenders apart: %d for two, %d for nine)",
		stat.RoundsToTellApart(2), stat.RoundsToTellApart(9)))
	fl.StringVar(&f.Until, "until", "", "end as soon as every ratio is known to this many `percent`, e.g. 5%; 0%: carry out all rounds (default: the suite's, or 0% with --rounds)")
	fl.DurationVar(&f.MaxTime, "max-time", 0, "end before this time has passed, after one round at least; not for a run with --rounds and without --until (default: the suite's)")
	fl.DurationVar(&f.Duration, "duration", 0, "measured time of each step (default: the suite's)")
	fl.DurationVar(&f.Slice, "slice", f.Slice, "all contenders stay up and are measured in turns of this `length`, in a cluster or under an emulated CPU 200ms unless given; 0: one after the other")
	fl.DurationVar(&f.Warmup, "warmup", 0, "time under load before the measured time, left out of every figure (default: the suite's)")
	fl.Uint64Var(&f.Seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.Out, "out", "", "run `directory` to write (default: cnibench-run-TIME)")
	fl.StringVar(&f.Resume, "resume", "", "go on with the interrupted run in `DIR`; finished samples are not repeated")
	fl.StringVar(&f.Rates, "rates", f.Rates, "rates of ladders: auto (shares of what the machine sustains) or given (the study's)")
	fl.StringVar(&f.RatesFrom, "rates-from", "", "take the rates that the run in `DIR` found, in place of shares of what the machine sustains now, so that the two can be compared")
	fl.StringVar(&f.MaxRate, "max-rate", "", "the most payload that a step sends, in `bit/s`, e.g. 500M; steps that can't be held to it are left out (default: none; in a cluster with --line-rate 80% of that for bulk steps; 0: none)")
	fl.BoolVar(&f.Keep, "keep", false, "lab: keep the last contender up until Ctrl-C, for cnibench enter")
	fl.StringVar(&f.Checks, "check", "", "`checks` to carry out on every contender before the first round, kept with the run: mtu,encryption or all; see cnibench list checks")
	fl.StringVar(&f.Baseline, "baseline", f.Baseline, "contender that every other is compared with")
	cmdutil.AddNodes(c, &f.Nodes)
	fl.StringVar(&f.Underlay, "underlay", f.Underlay, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.MTU, "mtu", f.MTU, "MTU of the underlay, `bytes`: a lab sets it; of a cluster it is what the nodes have")
	fl.StringVar(&f.PodMTU, "pod-mtu", "", "lab: MTU of the pods, `bytes`, as where it was set by hand or left at a default (default: what the contender fixes, else what its encapsulation leaves of --mtu)")
	fl.StringVar(&f.LineRate, "line-rate", "", "`rate` of each node's link, e.g. 10G: a lab shapes its links to it (default: unlimited); of a cluster it is what the links carry")
	fl.StringVar(&f.Offload, "offload", f.Offload, "lab: how frames cross the underlay: host (unsegmented, as veth hands them over; flatters TCP) or wire (each at most an MTU)")
	fl.IntSliceVar(&f.Services, "services", nil, "`numbers` of other Services beside the one that steps of the path service use, e.g. 1,100,10000; each in turn (default: the suite's, else 1)")
	fl.StringVar(&f.Congestion, "congestion-control", f.Congestion, "lab: TCP congestion control in every namespace; auto is cubic, or reno where cubic is not allowed")
	fl.StringVar(&f.CPUs, "cpus", "", "lab: CPUs of the client, the server and the rest, e.g. client=0-1,server=2-3,rest=4+5")
	fl.StringVar(&f.CNIConf, "cni-conf", "", "lab: run the CNI configuration in `FILE` as contender \"custom\"; \"usePodCidr\" stands for the node's pod subnet")
	fl.StringVar(&f.CNITransport, "cni-transport", f.CNITransport, "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	fl.BoolVar(&f.plan, "plan", false, "print what the run would do and make, and make nothing")
	addConfig(c, &f.config)
	addGuest(c, &f.Request)
	cmdutil.AddConnection(c, &f.Cluster)
	contextHelp(c)
	cmdutil.AddPods(c, &f.Cluster)
	cmdutil.AddInstall(c, &f.Cluster)
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
	clusters, err := f.clusters()
	if err != nil {
		return err
	}
	var jobs []*run.Job
	for _, one := range clusters {
		if err := one.Check(); err != nil {
			return err
		}
		job, err := one.Prepare()
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
		if f.plan {
			if err := job.WritePlan(c.OutOrStdout()); err != nil {
				return err
			}
		}
	}
	if f.plan {
		return nil
	}
	return leadAll(c, clusters, jobs)
}

// from completes the request with what the command line is and has set.
func (f *runFlags) from(c *cobra.Command) {
	f.Given, f.Tool = cmdutil.GivenFlags(c), tool()
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
