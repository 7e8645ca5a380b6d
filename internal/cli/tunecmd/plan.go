package tunecmd

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/tune"
)

func newTunePlanCmd(nodes Nodes) *cobra.Command {
	f := Flags{nodes: nodes}
	var asJSON bool
	var export string
	c := &cobra.Command{
		Use:   "plan [SETTING…]",
		Short: "Print what settings would change on this machine, why, and what they may cost",
		Long: `Reads the machine and prints for each setting what would change, why, which study says so
and what it may cost; or why the setting does not apply here. It changes nothing. Without
a profile or settings it plans all settings.`,
		Example: `  cnibench tune plan
  cnibench tune plan --profile study-2016 --set notrack.ports=80,443
  cnibench tune plan --profile throughput --export sysctl > 90-cnibench.conf`,
		RunE: func(c *cobra.Command, args []string) error {
			req, err := f.Request(args)
			if err != nil {
				return err
			}
			var byHand []string
			if len(req.Names()) == 0 || f.profile != "" {
				byHand = tune.ByHand(f.profile)
			}
			if len(req.Names()) == 0 {
				req = everything()
			}
			if export != "" {
				if _, err := text.Find("export format", export, tune.ExportFormats, func(s string) string { return s }); err != nil {
					return err
				}
			}
			if f.onCluster() {
				return f.onNodes(c, args)
			}
			m, err := f.machine()
			if err != nil {
				return err
			}
			facts, items, err := f.plan(c, m, req)
			if err != nil {
				return err
			}
			switch {
			case export != "":
				return tune.Export(c.OutOrStdout(), export, items)
			case asJSON:
				return cmdutil.PrintJSON(c.OutOrStdout(), planJSON(facts, items, byHand))
			}
			printPlan(c.OutOrStdout(), facts, items)
			printByHand(c.OutOrStdout(), byHand)
			return nil
		},
	}
	f.Choose(c)
	f.where(c)
	c.Flags().StringSliceVar(&f.nics, "nic", nil, "`interfaces` to tune (default: the interface of the default route)")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().StringVar(&export, "export", "", "print a file that sets these values at every start: "+cmdutil.JoinOr(tune.ExportFormats))
	_ = c.RegisterFlagCompletionFunc("export", cobra.FixedCompletions(tune.ExportFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// changeValue is the JSON form of a change, planValue that of a planned setting.
type changeValue struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Place string `json:"place"` // readable form
	From  string `json:"from"`
	To    string `json:"to"`
}

type planValue struct {
	tune.Setting
	State   string        `json:"state"`
	Changes []changeValue `json:"changes"`
	Advice  []string      `json:"advice"`
	Reason  string        `json:"reason,omitempty"`
	Remedy  string        `json:"remedy,omitempty"`
}

type machineValue struct {
	CPUs  int      `json:"cpus"`
	Cores int      `json:"cores"`
	NUMA  int      `json:"numa_nodes"`
	NICs  []string `json:"nics"`
}

func planJSON(facts *tune.Facts, items []tune.Item, byHand []string) any {
	machine := machineValue{CPUs: len(facts.Topology.CPUs), Cores: len(facts.Topology.Cores()), NUMA: len(facts.Topology.Nodes()), NICs: []string{}}
	for _, n := range facts.NICs {
		machine.NICs = append(machine.NICs, n.Name)
	}
	settings := []planValue{}
	for _, item := range items {
		v := planValue{
			Setting: item.Setting, State: string(item.State), Changes: []changeValue{}, Advice: []string{},
			Reason: item.Reason, Remedy: item.Remedy,
		}
		for _, c := range item.Changes {
			v.Changes = append(v.Changes, newChangeValue(c))
		}
		v.Advice = append(v.Advice, item.Advice...)
		settings = append(settings, v)
	}
	return map[string]any{"schema": "cnibench/tune-plan/1", "machine": machine, "settings": settings, "by_hand": append([]string{}, byHand...)}
}

func newChangeValue(c tune.Change) changeValue {
	return changeValue{string(c.Kind), c.Name, c.String(), c.From, c.To}
}

// plan plans the request on the machine.
func (f *Flags) plan(c *cobra.Command, m *tune.Machine, req tune.Request) (*tune.Facts, []tune.Item, error) {
	if err := knownNICs(m, f.nics); err != nil {
		return nil, nil, err
	}
	facts, err := tune.Gather(c.Context(), m, f.nics)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := req.Wanted()
	if err != nil {
		return nil, nil, err
	}
	items, err := tune.Plan(facts, wanted)
	if err != nil {
		return nil, nil, exit.Usage("%v", err)
	}
	return facts, items, nil
}

// knownNICs refuses an interface that the machine does not have.
func knownNICs(m *tune.Machine, names []string) error {
	all, err := m.Files.ReadDir("/sys/class/net")
	for _, name := range names {
		if err != nil {
			return err
		}
		if !slices.Contains(all, name) {
			return text.Unknown("interface", name, all)
		}
	}
	return nil
}
