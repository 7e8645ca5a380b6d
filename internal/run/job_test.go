package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

// What a run has left is said with the command that removes it, and has the
// exit code of a failure whatever it was.
func TestWhatARunHasLeft(t *testing.T) {
	left := fmt.Errorf("round 1/2: cilium: %w: %w", bench.ErrLeft, &arena.Unsupported{Reason: "may not"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		err   error
		arena string
		code  int
		says  []string
	}{
		"nothing":             {t.Context(), nil, Kube, exit.Done, nil},
		"left in a cluster":   {t.Context(), left, Kube, exit.Failed, []string{"round 1/2: cilium", "`cnibench clean --arena kube`"}},
		"left of a lab":       {t.Context(), left, Lab, exit.Failed, []string{"`cnibench clean`"}},
		"interrupted":         {ended, context.Canceled, Kube, exit.Failed, []string{"interrupted", "--resume dir"}},
		"interrupted, left":   {ended, errors.Join(context.Canceled, left), Kube, exit.Failed, []string{"--resume dir", "round 1/2: cilium", "`cnibench clean --arena kube`"}},
		"ended by itself":     {t.Context(), errors.New("disk"), Kube, exit.Failed, []string{"disk"}},
		"not supported, else": {t.Context(), &arena.Unsupported{Reason: "may not"}, Kube, exit.Unsupported, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cleanUp := (&labVenue{}).Traits().CleanUp
			if c.arena == Kube {
				cleanUp = (&clusterVenue{}).Traits().CleanUp
			}
			m := &Measurement{Resumption: "cnibench run --resume dir"}
			err := m.withNextStep(c.ctx, c.err, false, cleanUp)
			if (err != nil) != (c.err != nil) || err != nil && exit.Code(err) != c.code {
				t.Errorf("error %v", err)
			}
			for _, text := range c.says {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
		})
	}
}

// Privileged pods are for the check of encryption alone.
func TestPrivilegedForNothing(t *testing.T) {
	for name, test := range map[string]struct {
		privileged     bool
		checks, resume string
		wrong          bool
	}{
		"not asked for":         {},
		"without a check":       {privileged: true, wrong: true},
		"another check":         {privileged: true, checks: "mtu", wrong: true},
		"encryption":            {privileged: true, checks: "mtu,encryption"},
		"all":                   {privileged: true, checks: "all"},
		"a run that is resumed": {privileged: true, resume: "dir"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Request{Checks: test.checks, Resume: test.resume, Cluster: Cluster{Privileged: test.privileged}}
			if err := f.checkPrivileged(); (err != nil) != test.wrong || test.wrong && exit.Code(err) != exit.WrongUsage {
				t.Errorf("error %v", err)
			}
		})
	}
}
