package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/vm"
)

// A run has parts: what the running kernel can, and, in partDir of its
// directory, a whole run of what only another kernel can. docs/adr/0002 says
// why. The outer process, before the lab's container, leads both.

// arenaMicroVM is the arena of runs that a guest made.
const arenaMicroVM = "microvm"

// partDir is the guest's run directory below the run's own.
const partDir = "microvm"

// partsEnv tells the process in the lab's container that its caller goes on
// with a guest, so that contenders may be left to that.
const partsEnv = "CNIBENCH_PARTS"

// exitAllInGuest is how the process in the lab's container says that every
// contender which was asked for needs another kernel; nothing was written.
const exitAllInGuest = 75

// errKeptGuest refuses --keep for a guest.
var errKeptGuest = usage("--keep: the lab of a guest can't be entered from here; leave it out, or keep a contender of this kernel: --arena lab")

// lead runs the command line in the arena that it asks for, outside of the
// lab's container.
func (j *job) lead(c *cobra.Command) error {
	f := j.flags
	if os.Getenv(vm.GuestEnv) != "" { // a guest's own run: the kernel is this one
		return contain(c.Context())
	}
	whole := f.arena == arenaMicroVM || j.resumed != nil && j.resumed.Arena == arenaMicroVM
	if whole && f.keep {
		return errKeptGuest
	}
	if !whole && (f.arena == "lab" || f.keep) {
		return contain(c.Context())
	}
	if j.resumed == nil || whole || len(leftToGuest(j.resumed)) > 0 {
		if err := j.guestFits(c); err != nil {
			return err
		}
	}
	if whole {
		return j.inGuest(c, nil)
	}
	// The container's process must write where this one reads.
	if j.resumed == nil && !c.Flags().Changed("out") {
		os.Args = append(os.Args, "--out="+f.out)
	}
	if err := os.Setenv(partsEnv, "1"); err != nil {
		return err
	}
	err := contain(c.Context())
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitAllInGuest {
		return j.inGuest(c, nil)
	}
	if err != nil {
		return err
	}
	return j.part(c)
}

// guestFits finds what keeps the guest from booting that may follow, before
// anything is measured.
func (j *job) guestFits(c *cobra.Command) error {
	g := &j.flags.guest
	if j.resumed != nil {
		for _, dir := range []string{j.flags.out, filepath.Join(j.flags.out, partDir)} {
			if err := owned(dir); err != nil {
				return err
			}
		}
	}
	if vm.IsPath(g.kernel) || g.modules != "" { // a version may have to be fetched, which waits for the need
		_, err := vm.Find(c.Context(), g.kernel, g.modules, logger(os.Stderr))
		return vmError(err)
	}
	return nil
}

// part runs, after the native rounds, what they left to another kernel.
func (j *job) part(c *cobra.Command) error {
	f := j.flags
	run, err := result.Load(f.out)
	if err != nil {
		return err
	}
	left := leftToGuest(&run.Run)
	if len(left) == 0 {
		return nil // and the container's process has reported
	}
	log := logger(os.Stderr)
	if err := f.sameGuest(c, filepath.Join(f.out, partDir)); err != nil {
		return errors.Join(err, j.report(c, f.out, true))
	}
	config, err := f.guest.config(c.Context(), log)
	if err != nil {
		if vmUnsupported(err) != nil && !slices.ContainsFunc(left, j.named) {
			// Auto measures what it can; the table says what is missing and why.
			log.Warn("what needs another kernel is left out", "contenders", len(left), "why", err)
			err = nil
		}
		return errors.Join(err, j.report(c, f.out, true))
	}
	log.Info("the rest needs another kernel and runs in a guest", "kernel", config.Kernel.Release, "contenders", len(left))
	runErr := j.inGuest(c, &config)
	part, err := loadPart(f.out)
	if err == nil && part != nil && (empty(part) || exitCode(runErr) == exitGate) {
		runErr = nil // the report says so, of all parts
	}
	runErr = errors.Join(runErr, err)
	return errors.Join(runErr, j.missed(part), j.report(c, f.out, runErr == nil))
}

// named says that the contender was asked for by name.
func (j *job) named(id string) bool { return slices.Contains(j.wanted, id) }

// missed is the error of contenders that were asked for by name and that the
// guest can't run either.
func (j *job) missed(part *result.Record) error {
	if part == nil {
		return nil
	}
	var why []error
	for _, u := range part.Run.Unsupported {
		if u.Step == "" && j.named(u.Contender) {
			why = append(why, fmt.Errorf("contender %s: %s; %s", u.Contender, u.Reason, u.Remedy))
		}
	}
	if why == nil {
		return nil
	}
	return &exitError{exitUnsupported, errors.Join(why...)}
}

// empty says that the part has nothing to measure: its kernel runs none of
// the contenders that were left to it.
func empty(part *result.Record) bool { return len(part.Run.Plan.Contenders) == 0 }

// nothing writes such a part, for the reasons in it.
func (j *job) nothing(run *result.Run) error {
	run.Environment = result.Environment{"kernel.release": lab.KernelRelease()}
	ofGuest(run)
	store, err := result.Create(j.flags.out, run)
	if err != nil {
		return err
	}
	why := fmt.Errorf("kernel %s runs none of %s either", lab.KernelRelease(), strings.Join(j.only, ", "))
	return errors.Join(&exitError{exitUnsupported, why}, store.Close())
}

// leftToGuest are the contenders that another kernel may run.
func leftToGuest(run *result.Run) []string {
	var ids []string
	for _, u := range run.Unsupported {
		if u.OtherKernel && u.Step == "" && !slices.Contains(ids, u.Contender) {
			ids = append(ids, u.Contender)
		}
	}
	return ids
}

// inGuest runs this same program in a guest. With a configuration it runs the
// part of the run, else the whole command line.
func (j *job) inGuest(c *cobra.Command, config *vm.Config) error {
	f := j.flags
	dir, args := f.out, append(slices.Clone(os.Args[1:]), "--arena=lab")
	if config == nil {
		if j.resumed == nil {
			args = append(args, "--out="+dir)
		}
		if err := f.sameGuest(c, dir); err != nil {
			return err
		}
		found, err := f.guest.config(c.Context(), logger(os.Stderr))
		if err != nil {
			return err
		}
		config = &found
		config.Stdout = c.OutOrStdout()
	} else {
		dir = filepath.Join(f.out, partDir)
		args = append([]string{"run", "--arena=lab", "--part-of=" + f.out}, f.guest.args()...)
		switch begun, err := loadPart(f.out); {
		case err != nil:
			return err
		case begun != nil && empty(begun): // of a kernel that could not; this one may
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		case begun != nil:
			args = []string{"run", "--arena=lab", "--resume=" + dir}
		}
		config.Stdout = io.Discard // the report of both follows
	}
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	unlock, err := result.Lock(dir) // which the guest's own lock is not for this machine
	if err != nil {
		return err
	}
	code, err := guestRun(c.Context(), config, dir, args)
	err = errors.Join(err, unlock())
	written := !made || os.Remove(dir) != nil
	goOn := fmt.Sprintf("what is sealed is a valid run: go on with `cnibench run --resume %s`", f.out)
	switch {
	case err != nil && written:
		return vmError(fmt.Errorf("%w\n%s", err, goOn))
	case err != nil:
		return vmError(err)
	case code > 128 && written: // by a signal
		return errors.New("interrupted; " + goOn)
	case code > 128:
		return errors.New("interrupted before the first sample; nothing was written")
	case code == exitFailed && written: // whose own words don't know of the whole run
		return fmt.Errorf("the run in the guest failed; %s", goOn)
	case code != exitDone:
		return &exitError{code, fmt.Errorf("the run in the guest ended with exit code %d", code)}
	}
	return nil
}

func makeDir(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	return true, os.MkdirAll(dir, 0o755)
}

// vmUnsupported is the *vm.Unsupported in err's chain, or nil.
func vmUnsupported(err error) *vm.Unsupported {
	var u *vm.Unsupported
	errors.As(err, &u)
	return u
}

// ofGuest marks a run that is made in a guest.
func ofGuest(run *result.Run) {
	if os.Getenv(vm.GuestEnv) == "" {
		return
	}
	run.Arena = arenaMicroVM
	if run.Environment == nil {
		run.Environment = result.Environment{}
	}
	run.Environment[analysis.EmulatedKey] = os.Getenv(vm.EmulatedEnv)
}

// partPlan makes the plan of a part: that of the whole, with the contenders
// which it left. Rates that the whole has found for its own kernel are found
// anew.
func (j *job) partPlan(c *cobra.Command) error {
	f := j.flags
	rec, err := result.Load(f.partOf)
	if err != nil {
		return err
	}
	run := &rec.Run
	if err := f.adopt(c, run.Plan.Settings); err != nil {
		return err
	}
	// The guest has CPUs of its own, and nobody's own contender needs it.
	f.cpus, f.cniConf, f.cniText = "", "", ""
	f.baseline, f.out = run.Baseline, filepath.Join(f.partOf, partDir)
	options, err := f.labOptions()
	if err != nil {
		return err
	}
	j.ground = newLabGround(options)
	if j.catalogue, err = loadCatalogue(); err != nil {
		return err
	}
	if j.only = leftToGuest(run); len(j.only) == 0 {
		return usage("--part-of %s: the run left nothing to another kernel", f.partOf)
	}
	j.plan = run.Plan
	j.plan.Contenders, j.plan.Gaps, j.plan.Capacity, j.plan.Settings = nil, nil, nil, f.settings()
	if len(run.Plan.Capacity) > 0 {
		s, err := j.catalogue.suite(run.Plan.Suite)
		if err != nil {
			return err
		}
		asked, err := s.Expand("auto", f.services)
		if err != nil {
			return err
		}
		j.plan.Steps = slices.Clone(run.Plan.Steps)
		for i, step := range j.plan.Steps {
			if at := slices.IndexFunc(asked, func(s result.Step) bool { return s.ID == step.ID }); at >= 0 {
				j.plan.Steps[i] = asked[at]
			}
		}
	}
	return j.programs(j.plan.Steps)
}

// leaves says that the contender is left to a guest that the caller boots.
func (j *job) leaves(u *arena.Unsupported) bool {
	return u.OtherKernel && j.flags.arena == "auto" && os.Getenv(partsEnv) == "1"
}

// toGuest says what is to be told of a contender that needs another kernel.
func toGuest(u *arena.Unsupported) *arena.Unsupported {
	if !u.OtherKernel || os.Getenv(vm.GuestEnv) != "" {
		return u
	}
	told := *u
	told.Remedy += ", or run it in a guest: --arena microvm (needs QEMU: apt-get install qemu-system-x86)"
	return &told
}

// addParts joins the reports of a run's parts with its own.
func addParts(dir string, r *analysis.Report, opt analysis.Options) *analysis.Report {
	part := filepath.Join(dir, partDir)
	rec, err := loadPart(dir)
	switch {
	case err != nil:
		r.Findings = append(r.Findings, analysis.Finding{Severity: analysis.Error, Code: "part_unreadable",
			Text: fmt.Sprintf("the part of the run under another kernel can't be read: %v", err), Next: "See " + part + "."})
		return r
	case rec == nil:
		return r
	case empty(rec): // it says why, and no more
		merged := analysis.Merge(r, &analysis.Report{Unsupported: rec.Run.Unsupported}, partDir)
		merged.Parts = r.Parts
		return merged
	}
	return analysis.Merge(r, assembleOne(part, rec, opt), partDir)
}
