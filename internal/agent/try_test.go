package agent

import (
	"testing"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// A trial needs a journal and changes; nothing is taken back where nothing was tried.
func TestTryRefuses(t *testing.T) {
	change := []diagnose.Change{{Kind: "file", Name: "/proc/sys/net/ipv4/tcp_rmem", To: "1 2 3"}}
	for name, try := range map[string]Try{"no journal": {Changes: change}, "no change": {Journal: t.TempDir()}} {
		if err := try.complete(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := &server{}
	if _, err := s.untry(t.Context(), none{}); err != nil {
		t.Error(err)
	}
}
