package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/programs"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/vm"
)

// probeResult is what this machine can run.
type probeResult struct {
	Schema     string           `json:"schema"`
	Kernel     string           `json:"kernel"`
	User       string           `json:"user"` // root, or user (in a user namespace)
	Features   []lab.Feature    `json:"features"`
	Programs   []probeProgram   `json:"programs"`
	Contenders []probeContender `json:"contenders"`
}

type probeProgram struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	OK      bool   `json:"ok"`
	Remedy  string `json:"remedy,omitempty"`
}

type probeContender struct {
	ID string `json:"id"`
	OK bool   `json:"ok"`
	// Guest says that another kernel could run it, as cnibench run does.
	Guest  bool   `json:"guest,omitempty"`
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// probeFlags is the command line of `cnibench probe`.
type probeFlags struct {
	arena, nodes string
	given        map[string]bool
	asJSON       bool
	kube         run.Cluster
	packages     packagesFlags
}

func newProbeCmd() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe",
		Short: "What this machine, kernel or cluster can run; for each no, why and what would help",
		Long: `Tries every kernel feature that contenders need in a namespace that is thrown
away, and says which contenders can run here; for each that can't, why and what
would help. Nothing on the machine is changed.

With --arena kube it asks a cluster instead: whether it can be reached, what the
account may do, what its nodes are. What it makes there to ask, it removes.

With --packages it says which programs are missing for runs in the lab, or for
those of --suite and --contenders, and the one command that installs them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind, err := run.FindArena(f.arena)
			if err != nil {
				return err
			}
			f.given = givenFlags(c)
			if err := kind.Foreign(f.given); err != nil {
				return err
			}
			switch {
			case f.packages.only:
				return f.packages.run(c, f.asJSON)
			case f.given["suite"] || f.given["contenders"]:
				return exit.Usage("--suite and --contenders choose what --packages prints")
			case kind.Name == run.Kube:
				return probeKube(c, &f)
			}
			return probeLab(c, &f)
		},
	}
	addArena(c, &f.arena, "what to probe: auto (this kernel, as lab and microvm) or kube (a cluster)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print as JSON")
	f.packages.add(c)
	addNodes(c, &f.nodes)
	addConnection(c, &f.kube)
	addPods(c, &f.kube)
	addInstall(c, &f.kube)
	return c
}

// probeLab probes this kernel, inside the lab's container.
func probeLab(c *cobra.Command, f *probeFlags) error {
	if !lab.Contained() {
		// Inside, the user is always root.
		if err := os.Setenv(userEnv, userWord()); err != nil {
			return err
		}
		return run.Contain(c.Context())
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	p, err := probe(c)
	if err != nil {
		return err
	}
	if f.asJSON {
		return printJSON(c.OutOrStdout(), p)
	}
	p.print(c)
	return nil
}

const userEnv = "CNIBENCH_PROBE_USER"

func userWord() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "user"
}

func probe(c *cobra.Command) (*probeResult, error) {
	features, err := lab.Probe()
	if err != nil {
		return nil, err
	}
	p := &probeResult{Schema: "cnibench/probe/1", Kernel: lab.KernelRelease(), User: os.Getenv(userEnv), Features: features}
	wanted, err := programs.Run("", nil)
	if err != nil {
		return nil, err
	}
	for _, w := range wanted {
		p.Programs = append(p.Programs, probeProgram{w.Program, w.Package, w.Here, w.Remedy})
	}
	a, err := lab.New(lab.Options{
		Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto,
		CPUs: lab.DefaultPlacement(lab.CPUs()),
	})
	if err != nil {
		return nil, err
	}
	cat, err := run.LoadCatalogue()
	if err != nil {
		return nil, err
	}
	for _, x := range cat.Contenders {
		row := probeContender{ID: x.ID, OK: true}
		if err := a.Supports(c.Context(), x); err != nil {
			u := arena.AsUnsupported(err)
			if u == nil {
				return nil, err
			}
			row.OK, row.Guest, row.Reason, row.Remedy = false, u.OtherKernel, u.Reason, u.Remedy
			if u.OtherKernel {
				row.Remedy = guestRemedy()
			}
		}
		p.Contenders = append(p.Contenders, row)
	}
	return p, nil
}

// guestRemedy says how a contender that needs another kernel runs all the same.
func guestRemedy() string {
	if err := vm.Available(); err != nil {
		return "run it in a guest: " + err.Error()
	}
	return "cnibench run boots a guest for it"
}

func (p *probeResult) print(c *cobra.Command) {
	out := c.OutOrStdout()
	as := "as root"
	if p.User != "root" {
		as = "as an ordinary user, in a user namespace"
	}
	fmt.Fprintf(out, "Kernel %s, %s\n\n", p.Kernel, as)
	var rows [][]string
	for _, f := range p.Features {
		rows = append(rows, []string{f.Name, yesNo(f.OK), f.Option, f.Summary + suffix(f.Error+f.Note)})
	}
	printTable(out, []string{"Feature", "Here", "Option", "What"}, rows)
	fmt.Fprintln(out)
	rows = nil
	for _, x := range p.Programs {
		rows = append(rows, []string{x.Name, yesNo(x.OK), x.Remedy})
	}
	printTable(out, []string{"Program", "Here", "What would help"}, rows)
	fmt.Fprintln(out)
	printContenders(out, p.Contenders)
}

func printContenders(out io.Writer, list []probeContender) {
	var rows [][]string
	for _, x := range list {
		why := x.Reason
		if x.Remedy != "" {
			why += "; " + x.Remedy
		}
		here := yesNo(x.OK)
		if x.Guest {
			here = "guest"
		}
		rows = append(rows, []string{x.ID, here, why})
	}
	printTable(out, []string{"Contender", "Here", "Why not, and what would help"}, rows)
}

func yesNo(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func suffix(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
