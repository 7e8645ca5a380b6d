package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// checkFlags is the command line of `cnibench check`; what it shares with
// `cnibench run` has the same flags and meaning.
type checkFlags struct {
	runFlags
	mtus   []string
	format string // text, md, json
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
		Short: "Prove what a pod network does: packet sizes, encryption, policies",
		Long: strings.TrimSpace(`
Brings contenders up one after the other and asks of each whether what its file
claims is so. mtu: the pods' MTU against what crosses to another node in one
piece, and TCP's segments. encryption: whether a marked payload can be read
between the nodes, after proof that the watchers see one that was sent plain.
policy: whether NetworkPolicies let through what they allow and nothing else, and
after what time; needs a cluster, where all fails that does not enforce them.

The table has one row a contender: the verdict, what was found, what to do.
Several checks, and all, begin with one matrix of contenders and questions. A
run keeps the same results: cnibench run --check mtu,encryption.
Exit codes: 0 all as claimed; 1 a check could not be carried out; 2 wrong usage;
3 a contender named here can't run here; 4 not as claimed.`),
		Example: `  cnibench check mtu --contenders flannel-vxlan,calico-vxlan --mtu 1500,9000
  cnibench check encryption --contenders calico-wg --arena microvm
  cnibench check mtu --cni-conf mynet.conflist --contenders custom
  cnibench check policy --arena kube
  cnibench check all --arena kube --format md`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: append(names, "all"),
		RunE:      func(c *cobra.Command, args []string) error { return runCheck(c, &f, args[0]) },
	}
	addArena(c, &f.Arena, "where to check: auto (what this kernel can, in the lab), lab, microvm (the lab under another kernel) or kube (a cluster)")
	fl := c.Flags()
	fl.StringVar(&f.Contenders, "contenders", "supported", "`a,b`, or supported: all that can run here (all is the same)")
	fl.StringSliceVar(&f.mtus, "mtu", []string{"1500", "9000"}, "lab: MTU of the underlay, bytes; mtu is checked at each, the others at the first")
	fl.StringVar(&f.format, "format", checkFormats[0], "one of "+joinOr(checkFormats))
	fl.BoolVar(&f.asJSON, "json", false, "print as JSON: --format json")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(checkFormats, cobra.ShellCompDirectiveNoFileComp))
	addNodes(c, &f.Nodes)
	fl.StringVar(&f.Underlay, "underlay", lab.UnderlayAuto, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.Offload, "offload", lab.OffloadHost, "lab: how frames cross the underlay: host or wire")
	fl.StringVar(&f.CNIConf, "cni-conf", "", "lab: check the CNI configuration in `FILE` as contender \"custom\"")
	fl.StringVar(&f.CNITransport, "cni-transport", "routes", "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	addConnection(c, &f.Cluster)
	addPods(c, &f.Cluster)
	addInstall(c, &f.Cluster)
	return c
}

// runCheck checks flags outside of the lab and contenders inside of it.
func runCheck(c *cobra.Command, f *checkFlags, name string) error {
	checks, err := check.Named(name)
	if err != nil {
		return err
	}
	if f.asJSON {
		f.format = "json"
	}
	if !slices.Contains(checkFormats, f.format) {
		return nearest.Unknown("format", f.format, checkFormats)
	}
	kind, err := run.FindArena(f.Arena)
	if err != nil {
		return err
	}
	f.from(c)
	if err := kind.Foreign(f.Given); err != nil {
		return err
	}
	if kind.Name == run.MicroVM {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		// The last of a flag's values counts.
		return runVM(c, &vmFlags{}, append(append([]string{exe}, os.Args[1:]...), "--arena", "lab"))
	}
	grounds, err := kind.Places(&f.Request, f.mtus)
	if err != nil {
		return err
	}
	cat, err := run.LoadCatalogue(grounds[0].Own()...)
	if err != nil {
		return err
	}
	chosen, named, err := f.chosen(cat, grounds[0])
	if err != nil {
		return err
	}
	return grounds[0].Inside(c.Context(), func(ctx context.Context) error {
		out, err := carryOut(ctx, grounds, chosen, checks)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		return errors.Join(out.write(c.OutOrStdout(), f.format), out.exit(named))
	})
}

// chosen are the contenders to check, and whether they were asked for by name.
func (f *checkFlags) chosen(cat *run.Catalogue, g run.Place) (list []*contender.Contender, named bool, err error) {
	if f.Contenders == "supported" || f.Contenders == "all" {
		return g.Candidates(cat.Contenders), false, nil
	}
	var ids []string
	for _, id := range strings.Split(f.Contenders, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, true, usage("--contenders: none given; see `cnibench list contenders`")
	}
	if _, err := g.Named(ids); err != nil {
		return nil, true, err
	}
	for _, id := range ids {
		c, err := cat.Contender(id)
		if err != nil {
			return nil, true, err
		}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list, true, nil
}

// checkOutput is what `cnibench check --json` prints.
type checkOutput struct {
	Schema      string               `json:"schema"`
	Arena       string               `json:"arena"`
	Kernel      string               `json:"kernel"`
	Results     []check.Result       `json:"results"`
	Matrix      check.Matrix         `json:"matrix"`
	Unsupported []result.Unsupported `json:"unsupported"`
}

// carryOut checks every contender on every ground.
func carryOut(ctx context.Context, grounds []run.Place, chosen []*contender.Contender, checks []check.Check) (*checkOutput, error) {
	out := &checkOutput{Schema: "cnibench/check/1", Results: []check.Result{}, Unsupported: []result.Unsupported{}}
	bar := console.NewProgress(os.Stderr, len(grounds)*len(chosen))
	defer bar.Done()
	done := 0
	for i, g := range grounds {
		at, err := g.Open(ctx)
		if err != nil {
			return nil, err
		}
		a := at.Arena
		out.Arena, out.Kernel = a.Name(), at.Kernel
		runner := &check.Runner{Arena: a, Exe: at.Exe}
		where := ""
		if len(grounds) > 1 {
			where = fmt.Sprintf("MTU %d: ", at.MTU)
		}
		for _, c := range chosen {
			runner.Progress = func(text string) { bar.Step(done, len(grounds)*len(chosen), where+text, 0) }
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
		return exit.With(exit.Failed, fmt.Errorf("not carried out: %s", strings.Join(unique(broken), ", ")))
	case len(failed) > 0:
		return exit.With(exit.Gate, fmt.Errorf("not as claimed: %s", strings.Join(unique(failed), ", ")))
	case named && len(o.Unsupported) > 0:
		var ids []string
		for _, u := range o.Unsupported {
			ids = append(ids, u.Contender)
		}
		hint := ""
		if o.Arena == run.Lab {
			hint = "; --arena microvm may help"
		}
		return exit.With(exit.Unsupported, fmt.Errorf("can't run here: %s%s", strings.Join(ids, ", "), hint))
	}
	return nil
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

func listChecks(*run.Catalogue) ([][]string, any, error) {
	var rows [][]string
	var values []check.Info
	for _, c := range check.All() {
		values = append(values, c.Info())
		rows = append(rows, []string{c.Info().Name, c.Info().Summary})
	}
	return rows, values, nil
}
