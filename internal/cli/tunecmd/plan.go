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
				req = requestAll()
			}
			if export != "" {
				if _, err := text.Find("export format", export, tune.ExportFormats, func(s string) string { return s }); err != nil {
					return err
				}
			}
			if f.onCluster() {
				if export != "" {
					return f.onNodes(c, args, nil)
				}
				return f.onNodes(c, args, comparePlans(asJSON), "--json=true")
			}
			m, err := f.machine()
			if err != nil {
				return err
			}
			f.lasting = export != ""
			facts, items, err := f.plan(c, m, req)
			if err != nil {
				return err
			}
			if export != "" {
				return tune.Export(c.OutOrStdout(), export, items)
			}
			p := newPlan(facts, items, byHand)
			if asJSON {
				return cmdutil.PrintJSON(c.OutOrStdout(), p)
			}
			p.print(c.OutOrStdout())
			return nil
		},
	}
	f.Choose(c)
	f.where(c)
	c.Flags().StringSliceVar(&f.nics, "nic", nil, "`interfaces` to tune (default: that of the default route, and the tunnels, bridges and veths of the pods' path)")
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
	State   tune.State    `json:"state"`
	Changes []changeValue `json:"changes"`
	Advice  []string      `json:"advice"`
	Reason  string        `json:"reason,omitempty"`
	Remedy  string        `json:"remedy,omitempty"`
}

// deviceValue is a network device of a machine.
type deviceValue struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"` // vxlan, bridge, veth, …; "" for an interface to tune
	RX   int    `json:"rx_queues"`
	TX   int    `json:"tx_queues"`
}

type machineValue struct {
	CPUs       int           `json:"cpus"`
	Cores      int           `json:"cores"`
	NUMA       int           `json:"numa_nodes"`
	NICs       []string      `json:"nics"`
	Interfaces []deviceValue `json:"interfaces"` // those of NICs
	Path       []deviceValue `json:"path"`       // the other devices that pods' packets pass
}

// plan is what the settings would change on a machine, as JSON and on its way from a node.
type plan struct {
	Schema   string       `json:"schema"`
	Machine  machineValue `json:"machine"`
	Settings []planValue  `json:"settings"`
	ByHand   []string     `json:"by_hand"`
}

func newPlan(facts *tune.Facts, items []tune.Item, byHand []string) plan {
	machine := machineValue{CPUs: len(facts.Topology.CPUs), Cores: len(facts.Topology.Cores()), NUMA: len(facts.Topology.Nodes()), NICs: []string{}, Interfaces: []deviceValue{}, Path: []deviceValue{}}
	for _, n := range facts.NICs {
		machine.NICs = append(machine.NICs, n.Name)
		machine.Interfaces = append(machine.Interfaces, deviceValue{n.Name, n.Kind, n.RX, n.TX})
	}
	for _, n := range facts.Path {
		machine.Path = append(machine.Path, deviceValue{n.Name, n.Kind, n.RX, n.TX})
	}
	settings := []planValue{}
	for _, item := range items {
		v := planValue{
			Setting: item.Setting, State: item.State, Changes: []changeValue{}, Advice: []string{},
			Reason: item.Reason, Remedy: item.Remedy,
		}
		for _, c := range item.Changes {
			v.Changes = append(v.Changes, changeValue{string(c.Kind), c.Name, c.String(), c.From, c.To})
		}
		v.Advice = append(v.Advice, item.Advice...)
		settings = append(settings, v)
	}
	return plan{"cnibench/tune-plan/1", machine, settings, append([]string{}, byHand...)}
}

// items returns the plan's settings for people: all veths as one.
func (p plan) items() (list []tune.Item) {
	for _, v := range p.Settings {
		item := tune.Item{Setting: v.Setting, State: v.State, Reason: v.Reason, Remedy: v.Remedy, Proposal: tune.Proposal{Advice: v.Advice}}
		for _, c := range v.Changes {
			item.Changes = append(item.Changes, tune.Change{Place: tune.Place{Kind: tune.Kind(c.Kind), Name: c.Name}, From: c.From, To: c.To})
		}
		item.Changes = p.Machine.merged(item.Changes)
		list = append(list, item)
	}
	return list
}

// plan plans the request on the machine.
func (f *Flags) plan(c *cobra.Command, m *tune.Machine, req tune.Request) (*tune.Facts, []tune.Item, error) {
	if err := checkNICs(m, f.nics); err != nil {
		return nil, nil, err
	}
	facts, err := tune.Gather(c.Context(), m, f.nics)
	if err != nil {
		return nil, nil, err
	}
	if f.lasting {
		facts.Path = slices.DeleteFunc(facts.Path, func(n tune.NIC) bool { return n.Kind == veth })
	}
	wanted, err := req.LookUp()
	if err != nil {
		return nil, nil, err
	}
	items, err := tune.Plan(facts, wanted)
	if err != nil {
		return nil, nil, exit.Usage("%v", err)
	}
	return facts, items, nil
}

// checkNICs refuses an interface that the machine does not have.
func checkNICs(m *tune.Machine, names []string) error {
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
