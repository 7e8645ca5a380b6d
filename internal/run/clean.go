package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text/console"
)

// EndAbandonedLabs ends labs whose launcher is gone. It returns how many it ended,
// and the launchers of the labs that are in use.
func EndAbandonedLabs() (ended int, launchers []int, err error) {
	labs, err := lab.FindRunning()
	if err != nil {
		return 0, nil, err
	}
	var errs []error
	for _, l := range labs {
		if !l.Orphaned() {
			launchers = append(launchers, l.Launcher)
			continue
		}
		switch err := l.Kill(); {
		case err == nil:
			ended++
		case !errors.Is(err, os.ErrProcessDone):
			errs = append(errs, fmt.Errorf("lab %d: %w", l.Init, err))
		}
	}
	return ended, launchers, errors.Join(errs...)
}

// Endpoints returns, for each node and pod of a lab, the PID of a process in its
// namespaces. init is the PID of the lab's init; 0 if only one lab is up.
func Endpoints(init int) (map[string]int, error) {
	labs, err := lab.FindRunning()
	if err != nil {
		return nil, err
	}
	var inits []int
	for _, l := range labs {
		inits = append(inits, l.Init)
	}
	labs = slices.DeleteFunc(labs, func(r lab.Running) bool { return init != 0 && r.Init != init })
	switch {
	case len(labs) == 0:
		return nil, errors.New("no lab is up; start one that stays: cnibench run --contenders ID --keep")
	case len(labs) > 1:
		return nil, exit.Usage("%d labs are up; choose one with --lab: %v", len(labs), inits)
	}
	return labs[0].Endpoints, nil
}

// GuardCommand is the command of this program that calls Guard.
const GuardCommand = kube.GuardCommand

// Guard removes from a cluster what the process at the other end of r leaves there.
func Guard(ctx context.Context, r io.Reader) error { return kube.Guard(ctx, r) }

// Clean removes from the cluster what runs have left: their namespaces, and a contender
// that a run's journal in the cluster names as installed. It leaves alone what runs
// under way have there, unless all is true.
func (k *Cluster) Clean(ctx context.Context, all bool) (*kube.Cleaned, error) {
	options := k.Options(nil)
	cluster, err := kube.Connect(ctx, options)
	if err != nil {
		return nil, KubeError(err)
	}
	cleaned, err := kube.Clean(ctx, options, all)
	if cleaned == nil || len(cleaned.Spared) > 0 || len(k.Within) > 0 {
		return cleaned, KubeError(err)
	}
	id, installErr := k.uninstall(ctx, cluster)
	if id != "" && installErr == nil {
		cleaned.Removed = append(cleaned.Removed, id)
	}
	return cleaned, KubeError(errors.Join(err, installErr))
}

// uninstall removes a contender that is still installed, and returns its id. Options
// that the user did not give are in the run's journal.
func (k *Cluster) uninstall(ctx context.Context, cluster *kube.Cluster) (string, error) {
	installer, err := install.New(install.Options{Facts: k.Facts, Scratch: k.Scratch, Image: k.Image, PullPolicy: k.PullPolicy, Log: logInfo})
	if err != nil {
		return "", err
	}
	catalogue, err := LoadCatalogue()
	if err != nil {
		return "", err
	}
	return installer.Clean(ctx, cluster, catalogue.Contenders)
}

// logInfo writes a message to standard error.
func logInfo(format string, args ...any) {
	console.Logger(os.Stderr).Info(fmt.Sprintf(format, args...))
}
