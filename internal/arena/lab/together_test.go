//go:build linux

package lab

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// All contenders of the catalogue stand at the same time: each reaches its own
// pods, and the end of one is not the end of another one's processes.
func TestStandTogether(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	type standing struct {
		*contender.Contender
		arena.Network
	}
	var all []standing
	defer func() {
		for _, n := range all {
			if err := n.Down(t.Context()); err != nil {
				t.Errorf("%s: down: %v", n.ID, err)
			}
		}
	}()
	for _, c := range catalogue(t) {
		if c.ID == "flannel-udp" || a.Supports(t.Context(), c) != nil {
			continue
		}
		n, err := a.Up(t.Context(), c, a.Variant(c))
		if err != nil {
			t.Errorf("%s: up beside %d others: %v", c.ID, len(all), err)
			continue
		}
		all = append(all, standing{c, n})
	}
	meetAll := func() {
		t.Helper()
		for _, n := range all {
			for _, path := range []string{arena.PathPod, arena.PathService} {
				if a.HasPath(n.Contender, path) != nil {
					continue
				}
				if err := meet(t, n, path); err != nil {
					t.Errorf("%s beside %d others: %s: %v", n.ID, len(all)-1, path, err)
				}
			}
			if err := n.Fault(); err != nil {
				t.Errorf("%s beside %d others: %v", n.ID, len(all)-1, err)
			}
		}
	}
	if len(all) < len(everyKernel) {
		t.Errorf("only %d contenders stand", len(all))
	}
	t.Logf("%d contenders stand", len(all))
	meetAll()
	i := 0
	all = slices.DeleteFunc(all, func(n standing) bool {
		if i++; i%2 == 0 {
			return false
		}
		if err := n.Down(t.Context()); err != nil {
			t.Errorf("%s: down: %v", n.ID, err)
		}
		return true
	})
	meetAll()
}
