package tunecmd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// withTuneJournal opens the journal, if there is one, and calls fn.
func withTuneJournal(f *Flags, fn func(m *tune.Machine, j *tune.Journal) error) (found bool, err error) {
	m, err := f.machine()
	if err != nil {
		return false, err
	}
	dir, err := f.stateDir()
	if err != nil {
		return false, err
	}
	if !tune.HasJournal(dir) {
		if f.root == "" && tune.HasJournal(tuneSystemDir) {
			return false, errors.New("settings were applied as root; run it as root")
		}
		return false, nil
	}
	j, err := tune.OpenJournal(dir, m.BootID())
	if err != nil {
		return false, err
	}
	return true, errors.Join(fn(m, j), j.Close())
}

// nothingApplied is what status and revert print if there is no journal.
const nothingApplied = "nothing is applied"

func newTuneStatusCmd(nodes Nodes) *cobra.Command {
	f := Flags{nodes: nodes}
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Print what is applied, and what somebody changed since",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.onCluster() {
				return f.onNodes(c, args, nil)
			}
			out := c.OutOrStdout()
			var list []tune.Status
			_, err := withTuneJournal(&f, func(m *tune.Machine, j *tune.Journal) error {
				list = tune.StatusOf(c.Context(), m, j)
				return nil
			})
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.PrintJSON(out, statusJSON(list))
			}
			if len(list) == 0 {
				fmt.Fprintln(out, nothingApplied)
				return nil
			}
			var rows [][]string
			for _, s := range list {
				rows = append(rows, []string{s.Setting, s.Place.String(), cmp.Or(strings.Join(strings.Fields(s.From), " "), "–"), s.To, cmp.Or(strings.Join(strings.Fields(s.Now), " "), "–"), string(s.State)})
			}
			cmdutil.PrintTable(out, []string{"Setting", "Place", "Before", "Applied", "Now", "Standing"}, rows)
			return nil
		},
	}
	f.where(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func statusJSON(list []tune.Status) any {
	type value struct {
		Setting  string `json:"setting"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
		Before   string `json:"before"`
		Applied  string `json:"applied"`
		Now      string `json:"now"`
		Standing string `json:"standing"`
	}
	values := []value{}
	for _, s := range list {
		values = append(values, value{s.Setting, string(s.Kind), s.Name, s.From, s.To, s.Now, string(s.State)})
	}
	return map[string]any{"schema": "cnibench/tune-status/1", "applied": values}
}

func newTuneRevertCmd(nodes Nodes) *cobra.Command {
	f := Flags{nodes: nodes}
	var force, trials bool
	c := &cobra.Command{
		Use:   "revert",
		Short: "Restore every old value",
		Long: `Restores every old value from the journal, the newest first. A value that somebody has
changed since it was applied is kept and named, unless --force. What could not be restored,
or is not there now, such as a device, stays in the journal, so that you can try again.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.onCluster() {
				return f.onNodes(c, args, nil)
			}
			found, err := withTuneJournal(&f, func(m *tune.Machine, j *tune.Journal) error {
				if !trials {
					return f.takeBack(c, m, j, 0, force)
				}
				if mark := j.MarkOf(tune.Trial); mark < j.Mark() {
					return f.takeBack(c, m, j, mark, force)
				}
				return nil
			})
			if err == nil && !found && !trials {
				fmt.Fprintln(c.OutOrStdout(), nothingApplied)
			}
			return err
		},
	}
	f.where(c)
	c.Flags().BoolVar(&force, "force", false, "also restore values that somebody changed since, and forget what is not there")
	c.Flags().BoolVar(&trials, TrialsFlag, false, "only what a killed trial of diagnose left; prints nothing where there is none")
	_ = c.Flags().MarkHidden(TrialsFlag)
	return c
}

// TrialsFlag limits revert to what a killed `diagnose --prove` left; nobody types it.
const TrialsFlag = "trials"

// RevertTrials is the command line by which a node takes that back.
func RevertTrials() []string {
	return []string{"tune", "revert", "--arena=" + arenaNode, "--" + TrialsFlag}
}

// takeBack reverts everything since the journal's mark and prints what was restored.
func (f *Flags) takeBack(c *cobra.Command, m *tune.Machine, j *tune.Journal, mark int, force bool) error {
	r, err := tune.Revert(c.Context(), m, j, mark, force)
	var changes []tune.Change
	for _, e := range r.Restored {
		changes = append(changes, tune.Change{Place: e.Place, From: e.To, To: e.From})
	}
	for _, line := range changeWords(changes) {
		fmt.Fprintln(c.OutOrStdout(), line)
	}
	for _, e := range r.Gone {
		if force {
			fmt.Fprintf(c.OutOrStdout(), "%s: not there, and forgotten (was %s)\n", e.Place, e.From)
		} else {
			fmt.Fprintf(c.OutOrStdout(), "%s: not there now (was %s); kept in the journal: revert again when it is back, or forget it: %s --force\n", e.Place, e.From, f.revertCommand())
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "%s restored\n", unit.Plural(len(changes), "value"))
	var kept error
	if len(r.Kept) > 0 {
		var words []string
		for _, k := range r.Kept {
			words = append(words, fmt.Sprintf("%s (was %s, applied %s, now %s)", k.Place, k.From, k.To, k.Now))
		}
		kept = fmt.Errorf("kept, because somebody has changed it since: %s; to restore it anyway: %s --force", strings.Join(words, ", "), f.revertCommand())
	}
	return errors.Join(err, kept, failures(r.Failed))
}

// Clean reverts what this user has applied. done reports whether there was anything.
func Clean(c *cobra.Command) (done bool, err error) {
	dir, err := tune.StateDir()
	if err != nil || !tune.HasJournal(dir) {
		return false, nil // without a state folder nothing can have been applied
	}
	f := Flags{arena: arenaLocal}
	return withTuneJournal(&f, func(m *tune.Machine, j *tune.Journal) error {
		return f.takeBack(c, m, j, 0, false)
	})
}
