package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/bench"
)

// Privileged pods are for the check of encryption alone.
func TestPrivilegedForNothing(t *testing.T) {
	for flags, wrong := range map[string]bool{
		"": false, "--privileged": true, "--privileged --check=mtu": true,
		"--privileged --check=mtu,encryption": false, "--privileged --check=all": false, "--privileged --resume=dir": false,
	} {
		t.Run(flags, func(t *testing.T) {
			_, f := parsed(t, append([]string{"--arena=kube"}, strings.Fields(flags)...)...)
			if err := f.privilegedForNothing(); (err != nil) != wrong || wrong && exitCode(err) != exitUsage {
				t.Errorf("error %v", err)
			}
		})
	}
}

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
		"nothing":             {t.Context(), nil, arenaKube, exitDone, nil},
		"left in a cluster":   {t.Context(), left, arenaKube, exitFailed, []string{"round 1/2: cilium", "`cnibench clean --arena kube`"}},
		"left of a lab":       {t.Context(), left, arenaLab, exitFailed, []string{"`cnibench clean`"}},
		"interrupted":         {ended, context.Canceled, arenaKube, exitFailed, []string{"interrupted", "--resume dir"}},
		"interrupted, left":   {ended, errors.Join(context.Canceled, left), arenaKube, exitFailed, []string{"--resume dir", "`cnibench clean --arena kube`"}},
		"ended by itself":     {t.Context(), errors.New("disk"), arenaKube, exitFailed, []string{"disk"}},
		"not supported, else": {t.Context(), &arena.Unsupported{Reason: "may not"}, arenaKube, exitUnsupported, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{flags: &runFlags{arena: c.arena}}
			err := j.next(c.ctx, c.err, false, "dir")
			if (err != nil) != (c.err != nil) || err != nil && exitCode(err) != c.code {
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
