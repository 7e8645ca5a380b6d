package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// newDoctorCmd is the short form of diagnose: a line for each thing that a colleague asks
// first, and nothing is changed in a cluster.
func newDoctorCmd() *cobra.Command {
	f := runFlags{Request: run.NewRequest()}
	d := run.Diagnosis{Plain: true}
	asJSON, issue := false, false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Is the pod network sound? Six lines, one culprit, a minute",
		Long: strings.TrimSpace(`
Looks at two nodes, their pods, the cluster's DNS and a Service: reach, names, Services,
packet sizes, loss, speed. A line each, with its figure; below them the one cause that
explains most, and what to do. It measures what diagnose measures, and says what it does
meanwhile. diagnose names all causes and what excludes the others, and proves them.

With --issue it prints a paste for an issue tracker: the answer, and all that was seen in
one line, without names of nodes and pods and without public addresses. Whoever saves the
paste judges it again with cnibench diagnose FILE.
Exit codes are those of diagnose.`),
		Example: `  kubectl cnibench doctor
  cnibench doctor --arena kube --pod shop/cart-7f9
  cnibench doctor --arena kube --issue > paste.md; cnibench diagnose paste.md
  cnibench doctor --arena lab`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.from(c)
			out := c.OutOrStdout()
			return run.Diagnose(c.Context(), &f.Request, d, func(found *diagnose.Case, v *diagnose.Verdict) error {
				switch {
				case issue:
					paste, err := diagnose.Paste(found, "cnibench "+version)
					if err != nil {
						return err
					}
					_, err = io.WriteString(out, text.Safe(paste))
					return err
				case asJSON:
					return cmdutil.PrintJSON(out, struct {
						*diagnose.Verdict
						Lines []diagnose.Line `json:"lines"`
					}{v, diagnose.Doctor(found)})
				}
				return printDoctor(out, diagnose.Doctor(found), v)
			})
		},
	}
	addDiagnosed(c, &f)
	fl := c.Flags()
	fl.StringVar(&d.Contender, "contender", "", "lab: the contender whose network is looked at (default flannel-vxlan)")
	fl.StringVar(&d.Keep, "save", "", "write all that was seen to this `file`, which diagnose judges again")
	fl.BoolVar(&issue, "issue", false, "print a paste for an issue tracker, without names and public addresses")
	fl.BoolVar(&asJSON, "json", false, "print as JSON")
	c.MarkFlagsMutuallyExclusive("issue", "json")
	return c
}

// printDoctor prints the lines, then the first cause.
func printDoctor(out io.Writer, lines []diagnose.Line, v *diagnose.Verdict) error {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(text.SafeLine(fmt.Sprintf(format, args...)) + "\n") }
	for _, l := range lines {
		line("%s %-9s %s", map[bool]string{true: "✓", false: "✗"}[l.OK], l.What, l.Text)
	}
	b.WriteString("\n")
	switch {
	case v.Verdict == diagnose.Usual:
		line("Sound: this is what the datapath costs.")
	case len(v.Causes) == 0:
		line("No cause of the list fits. Next: cnibench diagnose, which lists what was excluded.")
	default:
		printClaim(line, v.Causes[0])
		if more := len(v.Causes) - 1; more > 0 {
			line("%d more: cnibench diagnose", more)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
