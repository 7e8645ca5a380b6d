package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// repeatRuns returns a request for each of the runs that --repeat asks for, in folders 1, 2, … of
// OUT.
func (f *runFlags) repeatRuns() ([]*runFlags, error) {
	switch {
	case f.repeat < 1 || f.spread < 0:
		return nil, exit.Usage("--repeat wants 1 run or more, and --spread no negative time")
	case f.repeat == 1:
		return nil, exit.Usage("--spread is the time from the begin of a run to that of the next; add --repeat 3")
	case strings.Contains(f.Cluster.Context, ","):
		return nil, exit.Usage("--repeat is for runs of one cluster; name one --context")
	case f.Resume != "" || f.Keep || f.Study != "":
		return nil, exit.Usage("--repeat makes new runs of a suite; leave out --resume, --keep and --study")
	}
	if f.Out == "" {
		f.Out = run.NewDir(time.Now())
	}
	var all []*runFlags
	for i := range f.repeat {
		one := *f
		one.Out = filepath.Join(f.Out, strconv.Itoa(i+1))
		if f.Given["seed"] {
			one.Seed += uint64(i)
		}
		all = append(all, &one)
	}
	return all, nil
}

// runRepeats makes one run after the other, each begun --spread after the one before, and
// shows what they say together.
func (f *runFlags) runRepeats(c *cobra.Command) error {
	runs, err := f.repeatRuns()
	if err != nil {
		return err
	}
	jobs, err := f.prepare(c, runs, 1) // they have one plan
	if err != nil || f.plan {
		return err
	}
	begin := time.Now()
	for i, job := range jobs {
		if wait := time.Until(begin.Add(time.Duration(i) * f.spread)); i > 0 && wait > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "run %d of %d begins in %s\n", i+1, len(jobs), wait.Round(time.Second))
			select {
			case <-time.After(wait):
			case <-c.Context().Done():
				return fmt.Errorf("%w; the runs so far: cnibench report %s", c.Context().Err(), text.ShellWord(f.Out))
			}
		}
		fmt.Fprintf(c.ErrOrStderr(), "run %d of %d: %s\n", i+1, len(jobs), filepath.Join(f.Out, strconv.Itoa(i+1)))
		if err := job.Lead(c.Context(), c.OutOrStdout()); err != nil {
			return fmt.Errorf("run %d of %d: %w", i+1, len(jobs), err)
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "\nAll %d runs together; again with: cnibench report %s\n\n", len(jobs), text.ShellWord(f.Out))
	together := newReportCmd()
	together.SetOut(c.OutOrStdout())
	return together.RunE(together, []string{f.Out})
}
