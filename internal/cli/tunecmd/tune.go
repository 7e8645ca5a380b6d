// Package tunecmd implements `cnibench tune`: its flags, its output and its exit codes.
// Package tune does the work. Next: New, below.
package tunecmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/inside"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/tune"
)

// New returns the command for this machine and, unless nodes is nil, those of a cluster.
// bench are its further subcommands.
func New(nodes Nodes, bench ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "Plan, measure, apply and revert host settings",
		Long: strings.TrimSpace(`
Works on the host settings that published studies tune.

  plan    prints what would change, why, which study says so and what it may cost;
          changes nothing
  bench   measures settings, alone and together
  apply   writes the old values to a journal, then changes them
  revert  restores the old values from the journal, even after a crash
  status  prints what is applied, and what somebody changed since

With --arena kube all of them work on the nodes of a cluster.`),
		Example: `  cnibench tune plan --profile study-2016
  cnibench tune bench --contender flannel-vxlan offloads rps socket-buffers
  cnibench tune apply governor rings
  cnibench tune revert`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTunePlanCmd(nodes), newTuneApplyCmd(nodes), newTuneStatusCmd(nodes), newTuneRevertCmd(nodes), inside.TuneHere())
	c.AddCommand(bench...)
	return c
}

// Flags choose settings and the machine.
type Flags struct {
	profile string
	set     []string // setting.parameter=value
	sysctls []string // key=value
	nics    []string
	lasting bool // plans no device that goes with a pod
	arena   string
	root    string // a copied tree of /proc and /sys to use instead of this machine
	nodes   Nodes  // nil: this program knows no clusters
	// takeBackWith is the command that reverts what was applied, if it is not the usual one.
	takeBackWith string
}

// Choose adds the flags that choose settings.
func (f *Flags) Choose(c *cobra.Command) {
	c.Flags().StringVar(&f.profile, "profile", "", "all settings for a purpose: "+strings.Join(profileNames(), ", "))
	c.Flags().StringArrayVar(&f.set, "set", nil, "parameter of a setting, `SETTING.PARAMETER=VALUE`; see cnibench list tunings")
	c.Flags().StringArrayVar(&f.sysctls, "sysctl", nil, "also set a kernel parameter of your own, `KEY=VALUE`")
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return settingNames(), cobra.ShellCompDirectiveNoFileComp
	}
	_ = c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profileNames(), cobra.ShellCompDirectiveNoFileComp))
}

// where adds the flags that choose the machine.
func (f *Flags) where(c *cobra.Command) {
	usual := arenaLocal
	if cmdutil.IsPlugin() {
		usual = arenaKube
	}
	c.Flags().StringVar(&f.arena, "arena", usual, "local (this machine) or kube (the nodes of a cluster, with --privileged)")
	cmdutil.CompleteWith(c, "arena", []string{arenaLocal, arenaKube})
	f.addKube(c)
	c.Flags().StringVar(&f.root, "root", "", "use a copied tree of /proc and /sys instead of this machine")
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

// Request returns the chosen settings: those of the profile, those named, and those whose
// parameters were given.
func (f *Flags) Request(args []string) (tune.Request, error) {
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
			return req, exit.Usage("--set %q: want SETTING.PARAMETER=VALUE, such as rfs.flows=30000", text)
		}
		if err := add(name, tune.Params{key: value}); err != nil {
			return req, err
		}
	}
	for _, text := range f.sysctls {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return req, exit.Usage("--sysctl %q: want KEY=VALUE, such as net.ipv4.tcp_rmem=4096,131072,6291456", text)
		}
		if req.Sysctls == nil {
			req.Sysctls = map[string]string{}
		}
		req.Sysctls[strings.TrimSpace(key)] = strings.Join(strings.Fields(value), " ")
	}
	if _, err := req.LookUp(); err != nil {
		return req, exit.Usage("%v", err)
	}
	return req, nil
}

// requestAll returns a request for every setting with its defaults.
func requestAll() tune.Request {
	var req tune.Request
	for _, name := range settingNames() {
		req.Settings = append(req.Settings, tune.Choice{Setting: name})
	}
	return req
}

// machine returns the machine to tune.
func (f *Flags) machine() (*tune.Machine, error) {
	if f.root != "" {
		return &tune.Machine{Files: host.Tree(f.root)}, nil
	}
	m, err := tune.LocalMachine()
	if err != nil {
		return nil, &arena.Unsupported{Reason: err.Error()}
	}
	return m, nil
}
