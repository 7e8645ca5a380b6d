package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune/bench"
)

// tuneBenchFlags is the command line of `cnibench tune bench`.
type tuneBenchFlags struct {
	tunecmd.Flags
	run       runFlags
	contender string
	steps     []string
	machine   bool
	asJSON    bool
	markdown  bool
}

func newTuneBenchCmd() *cobra.Command {
	f := tuneBenchFlags{run: runFlags{Request: run.NewRequest()}}
	c := &cobra.Command{
		Use:   "bench SETTING…|--profile PROFILE",
		Short: "Measure what host settings change: a contender without them, with each, and with all",
		Long: strings.TrimSpace(`
Measures a contender without settings, with each setting alone, and with all together, in
shuffled rounds. Says for each figure whether the setting helped, hurt, or
made no difference that the rounds can show.

In a lab settings are made in the network namespaces of the lab's nodes and pods, and go away with
them. Settings of the whole machine (governor, scheduler) need --machine: they are applied
before each measurement and taken back after it, through the journal of tune apply. The
output names the settings that a lab can't measure (daemons; interrupts, rings and flow
steering, which need the network devices of a guest: --nic).

With --arena kube they are made on the nodes of a cluster, by a privileged pod on each and
through the node's journal of tune apply, and taken back after each measurement. Pods have
network namespaces of their own, which stay as they are. Was it killed, take the settings
back with: cnibench tune revert --arena kube --privileged

Nothing stays applied. cnibench report DIR shows the run again.`),
		Example: `  cnibench tune bench --contender calico-vxlan offloads
  cnibench tune bench --contender flannel-vxlan --profile study-2016 --rounds 10
  cnibench tune bench --contender calico-ipip offloads --arena microvm
  cnibench tune bench --contender host irq rps rfs --arena microvm --nic e1000
  cnibench tune bench --arena kube --privileged rps rings --step dts
  cnibench tune bench --contender host --step dts --sysctl net.ipv4.tcp_rmem=4096,4096,4096`,
		RunE: func(c *cobra.Command, args []string) error { return runTuneBench(c, &f, args) },
	}
	f.Choose(c)
	fl := c.Flags()
	fl.StringVar(&f.contender, "contender", "", "`contender` to tune, in a lab required (default: the cluster's own pod network); see cnibench list contenders")
	fl.StringSliceVar(&f.steps, "step", nil, "only these `steps` of the suite")
	fl.BoolVar(&f.machine, "machine", false, "apply settings that are the whole machine's, too, during each visit (needs root)")
	fl.BoolVar(&f.asJSON, "json", false, "print the verdicts as JSON")
	fl.BoolVar(&f.markdown, "markdown", false, "print the verdicts as a Markdown table")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	fl.StringVar(&f.run.Suite, "suite", f.run.Suite, "`suite` to run; see cnibench list suites")
	addArena(c, &f.run.Arena, "where to run: auto or lab (this machine), microvm (the lab under another kernel) or kube (a cluster)")
	clusterflags.AddNodes(c, &f.run.Nodes)
	clusterflags.AddConnection(c, &f.run.Cluster)
	clusterflags.AddImage(c, &f.run.Cluster)
	fl.StringVar(&f.run.Cluster.Namespace, "namespace-prefix", run.DefaultNamespace, "kube: beginning of the names of the namespaces that are made")
	fl.BoolVar(&f.run.Cluster.Privileged, "privileged", false, "kube: allow one privileged pod a node, which sets the node and may do there what root may")
	fl.IntVar(&f.run.Rounds, "rounds", 0, "`number` of passes over all settings and steps (default: the suite's, else what it takes to tell the settings apart)")
	fl.DurationVar(&f.run.Duration, "duration", 0, "measured time of each step (default: the suite's)")
	fl.DurationVar(&f.run.Slice, "slice", f.run.Slice, "all variants stay up and are measured in turns of this `length`, under an emulated CPU 200ms unless given; 0: one after the other")
	fl.DurationVar(&f.run.Warmup, "warmup", 0, "time under load before the measured time (default: the suite's)")
	fl.Uint64Var(&f.run.Seed, "seed", 0, "seed of the shuffled order (default: from the clock)")
	fl.StringVar(&f.run.Out, "out", "", "run `directory` to write (default: cnibench-tune-TIME)")
	fl.StringVar(&f.run.MTU, "mtu", f.run.MTU, "lab: MTU of the underlay, bytes")
	fl.StringVar(&f.run.LineRate, "line-rate", "", "lab: shape each node's link to this rate (default: unlimited)")
	fl.StringVar(&f.run.Congestion, "congestion-control", f.run.Congestion, "lab: TCP congestion control in every namespace")
	fl.StringVar(&f.run.NIC, "nic", "", "microvm: join the nodes by network devices of this `model`, which have queues and interrupts: "+strings.Join(vm.NICModels(), " or ")+" (default: veth pairs)")
	fl.StringVar(&f.run.CPUs, "cpus", "", "lab: CPUs of the client, the server and the rest")
	addGuest(c, &f.run.Request)
	return c
}

func runTuneBench(c *cobra.Command, f *tuneBenchFlags, args []string) error {
	settings, err := f.Request(args)
	if err != nil {
		return err
	}
	f.run.from(c)
	b := bench.Bench{Request: &f.run.Request, Contender: f.contender, Steps: f.steps, Machine: f.machine, Settings: settings}
	j, err := b.Run(c.Context())
	if err != nil {
		return err
	}
	return f.print(c.OutOrStdout(), *j)
}
