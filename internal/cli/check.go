package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/result"
)

// checkFlags is the command line of `cnibench check`; what it shares with
// `cnibench run` has the same flags and meaning.
type checkFlags struct {
	runFlags
	mtus   []string
	asJSON bool
}

func newCheckCmd() *cobra.Command {
	var f checkFlags
	names := []string{}
	for _, c := range check.All() {
		names = append(names, c.Info().Name)
	}
	c := &cobra.Command{
		Use:   "check " + strings.Join(names, "|") + "|all",
		Short: "Prove what a pod network does: packet sizes, encryption",
		Long: strings.TrimSpace(`
Brings contenders up one after the other and asks of each whether what its file
claims is so. mtu: the pods' MTU against what crosses to another node in one
piece, and TCP's segments. encryption: whether a marked payload can be read
between the nodes, after proof that the watchers see one that was sent plain.

The table has one row a contender: the verdict, what was found, what to do. A
run keeps the same results: cnibench run --check mtu,encryption.
Exit codes: 0 all as claimed; 1 a check could not be carried out; 2 wrong usage;
3 a contender named here can't run here; 4 not as claimed.`),
		Example: `  cnibench check mtu --contenders flannel-vxlan,calico-vxlan --mtu 1500,9000
  cnibench check encryption --contenders calico-wg --arena microvm
  cnibench check mtu --cni-conf mynet.conflist --contenders custom
  cnibench check all --json`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: append(names, "all"),
		RunE:      func(c *cobra.Command, args []string) error { return runCheck(c, &f, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.arena, "arena", "auto", "where to check: auto (what this kernel can, in the lab), lab, or microvm (the lab under another kernel)")
	fl.StringVar(&f.contenders, "contenders", "supported", "`a,b`, or supported: all that can run here (all is the same)")
	fl.StringSliceVar(&f.mtus, "mtu", []string{"1500", "9000"}, "MTU of the underlay, bytes; mtu is checked at each, the others at the first")
	fl.BoolVar(&f.asJSON, "json", false, "print as JSON")
	fl.IntVar(&f.nodes, "nodes", 2, "lab: machines of the cluster")
	fl.StringVar(&f.underlay, "underlay", lab.UnderlayAuto, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.offload, "offload", lab.OffloadHost, "lab: how frames cross the underlay: host or wire")
	fl.StringVar(&f.cniConf, "cni-conf", "", "lab: check the CNI configuration in `FILE` as contender \"custom\"")
	fl.StringVar(&f.cniJoin, "cni-transport", "routes", "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	return c
}

// runCheck checks flags outside of the lab and contenders inside of it.
func runCheck(c *cobra.Command, f *checkFlags, name string) error {
	checks, err := check.Named(name)
	if err != nil {
		return err
	}
	switch f.arena {
	case "auto", "lab":
	case "microvm":
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		// The last of a flag's values counts.
		return runVM(c, &vmFlags{accel: "auto", memory: "4G"}, append(append([]string{exe}, os.Args[1:]...), "--arena", "lab"))
	case "kube":
		return &exitError{exitUnsupported, errors.New("arena kube: this version checks in the lab only; run with --arena lab")}
	default:
		return nearest.Unknown("arena", f.arena, []string{"auto", "lab", "microvm"})
	}
	options, err := f.underlays()
	if err != nil {
		return err
	}
	cat, err := loadCatalogue(options[0].Custom)
	if err != nil {
		return err
	}
	chosen, named, err := f.chosen(cat, options[0].Custom != nil)
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
	out, err := carryOut(ctx, options, chosen, checks)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		err = printJSON(c.OutOrStdout(), out)
	} else {
		out.print(c)
	}
	return errors.Join(err, out.exit(named))
}

// underlays are the lab's options, one for each MTU.
func (f *checkFlags) underlays() ([]lab.Options, error) {
	var list []lab.Options
	f.congestion = lab.CongestionAuto
	for _, text := range f.mtus {
		f.mtu = text
		o, err := f.labOptions()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other lab.Options) bool { return other.MTU == o.MTU }) {
			continue
		}
		list = append(list, o)
	}
	if len(list) == 0 {
		return nil, usage("--mtu: none given, e.g. --mtu 1500,9000")
	}
	return list, nil
}

// chosen are the contenders to check, and whether they were asked for by name.
func (f *checkFlags) chosen(cat *catalogue, custom bool) (list []*contender.Contender, named bool, err error) {
	if f.contenders == "supported" || f.contenders == "all" {
		return cat.contenders, false, nil
	}
	for _, id := range strings.Split(f.contenders, ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if id == lab.CustomID && !custom {
			return nil, true, usage("contender %s: give its configuration with --cni-conf FILE", id)
		}
		c, err := cat.contender(id)
		if err != nil {
			return nil, true, err
		}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, true, usage("--contenders: none given; see `cnibench list contenders`")
	}
	return list, true, nil
}

// checkOutput is what `cnibench check --json` prints.
type checkOutput struct {
	Schema      string               `json:"schema"`
	Arena       string               `json:"arena"`
	Kernel      string               `json:"kernel"`
	Results     []check.Result       `json:"results"`
	Unsupported []result.Unsupported `json:"unsupported"`
}

// carryOut checks every contender on every underlay.
func carryOut(ctx context.Context, options []lab.Options, chosen []*contender.Contender, checks []check.Check) (*checkOutput, error) {
	out := &checkOutput{Schema: "cnibench/check/1", Kernel: lab.KernelRelease(), Results: []check.Result{}, Unsupported: []result.Unsupported{}}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bar := newProgress(os.Stderr, len(options)*len(chosen))
	defer bar.Done()
	done := 0
	for i, o := range options {
		a, err := lab.New(o)
		if err != nil {
			return nil, err
		}
		out.Arena = a.Name()
		runner := &check.Runner{Arena: a, Exe: exe}
		for _, c := range chosen {
			runner.Progress = func(text string) {
				bar.Step(done, len(options)*len(chosen), fmt.Sprintf("MTU %d: %s", o.MTU, text), 0)
			}
			ask := checks
			if i > 0 { // only packet sizes follow from it
				ask = slices.DeleteFunc(slices.Clone(checks), func(c check.Check) bool { return c.Info().Name != "mtu" })
			}
			done++
			if err := a.Supports(ctx, c); err != nil {
				u := arena.AsUnsupported(err)
				if u == nil {
					return nil, err
				}
				if i == 0 {
					out.Unsupported = append(out.Unsupported, result.Unsupported{Contender: c.ID, Reason: u.Reason, Remedy: u.Remedy})
				}
				continue
			}
			if len(ask) == 0 {
				continue
			}
			results, err := runner.Run(ctx, c, a.Variant(c), ask)
			if err != nil {
				return nil, err
			}
			out.Results = append(out.Results, results...)
		}
	}
	return out, nil
}

// print shows one row a contender and check.
func (o *checkOutput) print(c *cobra.Command) {
	out := c.OutOrStdout()
	var rows [][]string
	results := slices.Clone(o.Results)
	slices.SortStableFunc(results, func(a, b check.Result) int { return strings.Compare(a.Contender, b.Contender) })
	for _, r := range results {
		under := ""
		if r.UnderlayMTU > 0 {
			under = fmt.Sprint(r.UnderlayMTU)
		}
		verdict, found, text := string(r.Verdict()), "", r.Error
		if r.Error != "" {
			verdict = "error"
		} else if told := r.Telling(); told != nil {
			found, text = told.Found, told.Text+sameAs(&r, told)
			if told.Next != "" {
				text += ". " + told.Next
			}
		}
		rows = append(rows, []string{r.Contender, r.Check, under, verdict, found, text})
	}
	if len(rows) > 0 {
		printTable(out, []string{"Contender", "Check", "Underlay", "Verdict", "Found", "What, and what to do"}, rows)
	}
	if len(o.Unsupported) == 0 {
		return
	}
	rows = nil
	for _, u := range o.Unsupported {
		rows = append(rows, []string{u.Contender, strings.TrimSuffix(u.Reason, ".") + "; " + u.Remedy})
	}
	fmt.Fprintln(out)
	printTable(out, []string{"Not here", "Why, and what would help"}, rows)
}

// sameAs names the other cases that came out as the told one.
func sameAs(r *check.Result, told *check.Case) string {
	var names []string
	for _, c := range r.Cases {
		if c.Verdict == told.Verdict && c.Found == told.Found && c.Name != told.Name {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; likewise " + strings.Join(names, ", ")
}

// exit is the error that carries the exit code: what could not be carried out
// weighs most, then what is not as claimed, then what can't run here.
func (o *checkOutput) exit(named bool) error {
	var broken, failed []string
	for _, r := range o.Results {
		name := r.Contender + " (" + r.Check + ")"
		switch {
		case r.Error != "":
			broken = append(broken, name)
		case r.Verdict() == check.Fail:
			failed = append(failed, name)
		}
	}
	switch {
	case len(broken) > 0:
		return &exitError{exitFailed, fmt.Errorf("not carried out: %s", strings.Join(unique(broken), ", "))}
	case len(failed) > 0:
		return &exitError{exitGate, fmt.Errorf("not as claimed: %s", strings.Join(unique(failed), ", "))}
	case named && len(o.Unsupported) > 0:
		var ids []string
		for _, u := range o.Unsupported {
			ids = append(ids, u.Contender)
		}
		return &exitError{exitUnsupported, fmt.Errorf("can't run here: %s; --arena microvm may help", strings.Join(ids, ", "))}
	}
	return nil
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// checkPlan runs the checks of the list once on every contender of the plan,
// and returns what they found as keys of the run's environment.
func checkPlan(ctx context.Context, a arena.Arena, cat *catalogue, exe, list string, plan *result.Plan, say func(string)) (result.Environment, error) {
	checks, err := check.Named(list)
	if err != nil {
		return nil, err
	}
	runner := &check.Runner{Arena: a, Exe: exe, Progress: say}
	var all []check.Result
	for _, entry := range plan.Contenders {
		c, err := cat.contender(entry.ID)
		if err != nil {
			return nil, err
		}
		results, err := runner.Run(ctx, c, entry.Underlay, checks)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return check.Environment(all), nil
}

func listChecks(*catalogue) ([][]string, any, error) {
	var rows [][]string
	var values []check.Info
	for _, c := range check.All() {
		values = append(values, c.Info())
		rows = append(rows, []string{c.Info().Name, c.Info().Summary})
	}
	return rows, values, nil
}
