package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// kernels returns the runs of a study: one of this kernel, and, if some of the study's
// contenders need another kernel and a guest can boot here, one in a guest. They are in
// folders lab and microvm of OUT, which `cnibench report OUT` shows one under the other.
func (f *runFlags) kernels(c *cobra.Command) ([]*runFlags, error) {
	if f.Arena != run.Auto || f.Resume != "" || f.plan || f.Keep || vm.Available() != nil {
		return []*runFlags{f}, nil
	}
	catalogue, err := run.LoadCatalogue()
	if err != nil {
		return nil, err
	}
	probe, err := run.ProbeLab(c.Context())
	if err != nil {
		return nil, err
	}
	wanted := catalogue.OfStudy(f.Study)
	if f.Given["contenders"] && f.Contenders != "supported" && f.Contenders != "all" {
		wanted = strings.Split(f.Contenders, ",")
	}
	return f.splitByKernel(wanted, probe.Contenders), nil
}

// splitByKernel divides the wanted contenders into those of this kernel and those that
// another kernel may run, and the time that the user gave by their numbers.
func (f *runFlags) splitByKernel(wanted []string, supports []run.Support) []*runFlags {
	var here, inGuest []string
	for _, id := range wanted {
		id = strings.TrimSpace(id)
		if slices.ContainsFunc(supports, func(s run.Support) bool { return s.ID == id && s.Guest }) {
			inGuest = append(inGuest, id)
		} else {
			here = append(here, id)
		}
	}
	switch {
	case inGuest == nil:
		return []*runFlags{f}
	case here == nil || slices.Equal(here, []string{f.Baseline}): // this kernel runs nothing to compare
		f.Arena, f.CPUs = run.MicroVM, ""
		return []*runFlags{f}
	}
	if f.Out == "" {
		f.Out = run.NewDir(time.Now())
	}
	first, second := *f, *f
	first.Arena, first.Out = run.Lab, filepath.Join(f.Out, run.Lab)
	if f.Given["contenders"] {
		first.Contenders = strings.Join(here, ",")
	}
	second.Arena, second.Out, second.Contenders = run.MicroVM, filepath.Join(f.Out, run.MicroVM), strings.Join(inGuest, ",")
	second.CPUs, second.CNIConf = "", "" // a guest numbers its own CPUs, and the user's own contender needs none
	if f.Given["max-time"] {             // an equal share for each contender, and for the guest's own baseline
		first.MaxTime = f.MaxTime * time.Duration(len(here)) / time.Duration(len(wanted)+1)
		second.MaxTime = f.MaxTime - first.MaxTime
	}
	return []*runFlags{&first, &second}
}

// runKernels measures a study, under one kernel after the other.
func (f *runFlags) runKernels(c *cobra.Command) error {
	all, err := f.kernels(c)
	if err != nil {
		return err
	}
	if len(all) == 1 {
		return all[0].runOnce(c)
	}
	jobs, err := f.prepare(c, all, 0)
	if err != nil {
		return err
	}
	for i, job := range jobs {
		fmt.Fprintf(c.ErrOrStderr(), "run %d of %d, arena %s: %s\n", i+1, len(jobs), all[i].Arena, all[i].Out)
		if err := job.Lead(c.Context(), c.OutOrStdout()); err != nil {
			if i+1 < len(jobs) {
				err = errors.Join(err, fmt.Errorf("what needs another kernel was not begun; measure it with: cnibench run --study %s --arena %s --contenders %s --out %s",
					all[1].Study, all[1].Arena, all[1].Contenders, text.ShellWord(all[1].Out)))
			}
			return err
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "\nBoth runs, one under the other: cnibench report %s\n", text.ShellWord(f.Out))
	return nil
}
