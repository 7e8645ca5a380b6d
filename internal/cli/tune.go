package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune"
)

func newTuneCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "Host settings: say what they would change, measure what they buy, apply them, take them back",
		Long: strings.TrimSpace(`
The host settings that the studies tune. plan changes nothing and says what
would be changed, why, who says so and what it costs. bench measures settings
in the lab, alone and together. apply writes the old values to a journal before
it changes anything, and revert takes them back, after a crash too. With
--arena kube all but bench work on the nodes of a cluster.`),
		Example: `  cnibench tune plan --profile study-2016
  cnibench tune bench --contender flannel-vxlan offloads rps socket-buffers
  cnibench tune apply governor rings
  cnibench tune revert`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTunePlanCmd(), newTuneApplyCmd(), newTuneStatusCmd(), newTuneRevertCmd(), newTuneBenchCmd(), newTuneHereCmd())
	return c
}

// tuneFlags choose settings and the machine.
type tuneFlags struct {
	profile string
	set     []string // setting.parameter=value
	sysctls []string // key=value
	nics    []string
	arena   string
	root    string // a tree that stands for the machine
	nodes   string // of a cluster
	kube    run.Cluster
	// The command that takes back what was applied, where it is not this
	// machine's own.
	takeBackWith string
}

// choose adds the flags that choose settings.
func (f *tuneFlags) choose(c *cobra.Command) {
	c.Flags().StringVar(&f.profile, "profile", "", "settings for a purpose: "+strings.Join(profileNames(), ", "))
	c.Flags().StringArrayVar(&f.set, "set", nil, "parameter of a setting, `SETTING.PARAMETER=VALUE`; see cnibench list tunings")
	c.Flags().StringArrayVar(&f.sysctls, "sysctl", nil, "a kernel parameter of your own beside them, `KEY=VALUE`")
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return settingNames(), cobra.ShellCompDirectiveNoFileComp
	}
	_ = c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profileNames(), cobra.ShellCompDirectiveNoFileComp))
}

// where adds the flags that choose the machine.
func (f *tuneFlags) where(c *cobra.Command) {
	usual := arenaLocal
	if isPlugin() {
		usual = run.Kube
	}
	c.Flags().StringVar(&f.arena, "arena", usual, "local (this machine) or kube (the nodes of a cluster, with --privileged)")
	fixed(c, "arena", []string{arenaLocal, run.Kube})
	f.addKube(c)
	c.Flags().StringVar(&f.root, "root", "", "a copied tree of /proc and /sys that stands for the machine")
	_ = c.Flags().MarkHidden("root")
}

func profileNames() []string {
	var names []string
	for _, p := range tune.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

func settingNames() []string {
	var names []string
	for _, s := range tune.All() {
		names = append(names, s.Name)
	}
	return names
}

// request is the settings that were chosen: those of the profile, those named,
// and those that a parameter was given for.
func (f *tuneFlags) request(args []string) (tune.Request, error) {
	var req tune.Request
	at := map[string]int{}
	add := func(name string, params tune.Params) error {
		if _, err := tune.Lookup(name); err != nil {
			return err
		}
		i, known := at[name]
		if !known {
			i = len(req.Settings)
			at[name] = i
			req.Settings = append(req.Settings, tune.Choice{Setting: name, Params: tune.Params{}})
		}
		for key, value := range params {
			req.Settings[i].Params[key] = value
		}
		return nil
	}
	if f.profile != "" {
		p, err := tune.LookupProfile(f.profile)
		if err != nil {
			return req, err
		}
		for _, choice := range p.Choices {
			if err := add(choice.Setting, choice.Params); err != nil {
				return req, err
			}
		}
	}
	for _, name := range args {
		if err := add(name, nil); err != nil {
			return req, err
		}
	}
	for _, text := range f.set {
		what, value, ok := strings.Cut(text, "=")
		name, key, dotted := strings.Cut(what, ".")
		if !ok || !dotted {
			return req, usage("--set %q: want SETTING.PARAMETER=VALUE, such as rfs.flows=30000", text)
		}
		if err := add(name, tune.Params{key: value}); err != nil {
			return req, err
		}
	}
	for _, text := range f.sysctls {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return req, usage("--sysctl %q: want KEY=VALUE, such as net.ipv4.tcp_rmem=4096,131072,6291456", text)
		}
		if req.Sysctls == nil {
			req.Sysctls = map[string]string{}
		}
		req.Sysctls[strings.TrimSpace(key)] = strings.Join(strings.Fields(value), " ")
	}
	if _, err := req.Wanted(); err != nil {
		return req, usage("%v", err)
	}
	return req, nil
}

// everything is every setting with its defaults.
func everything() tune.Request {
	var req tune.Request
	for _, name := range settingNames() {
		req.Settings = append(req.Settings, tune.Choice{Setting: name})
	}
	return req
}

// machine is the one to tune: this one.
func (f *tuneFlags) machine() (*tune.Machine, error) {
	if f.root != "" {
		return &tune.Machine{Files: host.Tree(f.root)}, nil
	}
	m, err := tune.Local()
	if err != nil {
		return nil, &arena.Unsupported{Reason: err.Error()}
	}
	return m, nil
}

// plan plans the request on the machine.
func (f *tuneFlags) plan(c *cobra.Command, m *tune.Machine, req tune.Request) (*tune.Facts, []tune.Item, error) {
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
	// A later setting may see less of the machine; what was read stays for the listing.
	seen := *facts
	topology := *facts.Topology
	topology.CPUs = slices.Clone(facts.Topology.CPUs)
	seen.Topology = &topology
	items, err := tune.Plan(facts, wanted)
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	return &seen, items, nil
}

// knownNICs refuses an interface that the machine does not have.
func knownNICs(m *tune.Machine, names []string) error {
	all, err := m.Files.ReadDir("/sys/class/net")
	for _, name := range names {
		if err != nil {
			return err
		}
		if !slices.Contains(all, name) {
			return nearest.Unknown("interface", name, all)
		}
	}
	return nil
}

// listTunings is `cnibench list tunings`.
func listTunings(*run.Catalogue) ([][]string, any, error) {
	type value struct {
		settingValue
		Params   []tuneParam `json:"params"`
		Profiles []string    `json:"profiles"`
	}
	var rows [][]string
	var values []value
	for _, s := range tune.All() {
		v := value{settingValue: newSettingValue(s), Params: []tuneParam{}, Profiles: []string{}}
		var words []string
		for _, p := range s.Params {
			v.Params = append(v.Params, tuneParam{p.Name, p.Default, p.Help})
			words = append(words, p.Name+"="+p.Default)
		}
		for _, p := range tune.Profiles() {
			if slices.ContainsFunc(p.Choices, func(c tune.Choice) bool { return c.Setting == s.Name }) {
				v.Profiles = append(v.Profiles, p.Name)
			}
		}
		values = append(values, v)
		rows = append(rows, []string{s.Name, string(s.Scope), strings.Join(s.Studies, ", "), strings.Join(words, " "), s.Summary})
	}
	return rows, values, nil
}

type tuneParam struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

// settingValue is a setting as JSON shows it.
type settingValue struct {
	Name    string   `json:"name"`
	Scope   string   `json:"scope"`
	Summary string   `json:"summary"`
	Why     string   `json:"why"`
	Studies []string `json:"studies"`
	Source  string   `json:"source"`
	Cost    string   `json:"cost,omitempty"`
	Avoid   string   `json:"avoid,omitempty"`
}

func newSettingValue(s tune.Setting) settingValue {
	studies := s.Studies
	if studies == nil {
		studies = []string{}
	}
	return settingValue{
		Name: s.Name, Scope: string(s.Scope), Summary: s.Summary, Why: s.Why, Studies: studies, Source: s.Source,
		Cost: s.Cost, Avoid: s.Avoid,
	}
}
