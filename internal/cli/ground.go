package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// ground is where a command measures or checks, as its flags say: all that
// commands know of an arena before there is one. Next: ground_lab.go.
type ground interface {
	// lead carries the job out in that place.
	lead(c *cobra.Command, j *job) error
	// inside calls use in that place, with a context that the first signal to
	// end ends.
	inside(c *cobra.Command, use func(context.Context) error) error
	// open makes the arena; it is called inside.
	open(ctx context.Context) (*opened, error)
	// own are the contenders that it has beside the catalogue's. open may
	// find out more of them.
	own() []*contender.Contender
	// candidates are those of all that are considered when none is named.
	candidates(all []*contender.Contender) []*contender.Contender
	// named are the contenders to run where those are named, or says what is
	// wrong with a name.
	named(ids []string) ([]string, error)
	// equip says which programs the steps run. What is missing on this
	// machine is an error now; what is missing elsewhere, one of the arena's Up.
	equip(programs []host.Program) error
	// describe is what a reader of the run must know of the contender there.
	describe(c *contender.Contender) result.ContenderInfo
}

// opened is an arena, and what those who use it must know.
type opened struct {
	arena    arena.Arena
	exe      string       // this program, as the endpoints start it
	kernel   string       // release that the arena runs on; empty: as its first node says
	lineRate unit.BitRate // of each node's link; 0 is unknown or unlimited
	mtu      int          // of the underlay, bytes
}

// arenaRow is a value of --arena.
type arenaRow struct {
	name  string
	makes []string // the arenas that its runs name
	// flags are those that mean something there; others of other rows are
	// refused.
	flags []string
	// settings are those that a plan remembers, and recorded their values. A
	// resumed run can't change those that are fixed.
	settings, fixed []string
	recorded        func(f *runFlags) map[string]string
	// check finds wrong usage before anything is read.
	check func(f *runFlags) error
	// ground is the place as the flags choose it; nothing is made yet.
	ground func(f *runFlags) (ground, error)
	// grounds are the places to check in, with the same contenders.
	grounds func(f *checkFlags) ([]ground, error)
	// probe says what can run there, and clean takes back what was left there.
	probe func(c *cobra.Command, f *probeFlags) error
	clean func(c *cobra.Command, f *cleanFlags) error
}

const (
	arenaAuto = "auto"
	arenaLab  = "lab"
	arenaKube = "kube"
)

// arenaRows are the values of --arena, in the order of the help.
func arenaRows() []arenaRow {
	return []arenaRow{labRow(arenaAuto), labRow(arenaLab), labRow(arenaMicroVM), kubeRow()}
}

func findArena(name string) (arenaRow, error) {
	return nearest.Find("arena", name, arenaRows(), func(r arenaRow) string { return r.name })
}

// addArena adds --arena to a command. A plugin of kubectl means the cluster.
func addArena(c *cobra.Command, value *string, help string) {
	usual := arenaAuto
	if isPlugin() {
		usual = arenaKube
	}
	var names []string
	for _, r := range arenaRows() {
		names = append(names, r.name)
	}
	c.Flags().StringVar(value, "arena", usual, help)
	_ = c.RegisterFlagCompletionFunc("arena", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// foreign refuses flags of other arenas, which would do nothing.
func (r *arenaRow) foreign(c *cobra.Command) error {
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		if err != nil || slices.Contains(r.flags, flag.Name) {
			return
		}
		var theirs []string
		for _, other := range arenaRows() {
			if slices.Contains(other.flags, flag.Name) {
				theirs = append(theirs, other.name)
			}
		}
		if theirs != nil {
			err = usage("--%s: means nothing with --arena %s, only with %s; leave it out", flag.Name, r.name, strings.Join(theirs, ", "))
		}
	})
	return err
}

// goesOn is the row that a run of that arena goes on in: the asked one where it
// makes such runs, else the first that does, unless the user asked.
func (r arenaRow) goesOn(of string, asked bool) (arenaRow, error) {
	if slices.Contains(r.makes, of) {
		return r, nil
	}
	rows := arenaRows()
	at := slices.IndexFunc(rows, func(other arenaRow) bool { return slices.Contains(other.makes, of) })
	switch {
	case at < 0:
		return r, nil // an imported run: the machine will tell
	case asked:
		return r, usage("--arena %s: the run was made with --arena %s; leave --arena out", r.name, rows[at].name)
	}
	return rows[at], nil
}

// keepsPlan refuses flags that would change the plan of a resumed run.
func keepsPlan(c *cobra.Command, fixed []string) error {
	for _, flag := range fixed {
		if c.Flags().Changed(flag) {
			return usage("--%s: a resumed run keeps its plan; leave it out, or start a new run", flag)
		}
	}
	return nil
}

// isSetting says that a plan of that arena may remember the flag.
func (r *arenaRow) isSetting(flag string) bool {
	return slices.Contains(commonSettings, flag) || slices.Contains(r.settings, flag)
}
