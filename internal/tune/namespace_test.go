package tune

import (
	"testing"

	"github.com/cnibench/cnibench/internal/host"
)

// deaf takes what is written and keeps what it has.
type deaf struct{ host.FS }

func (deaf) WriteFile(string, []byte) error { return nil }

// A value that stays after it was set is no change that was made.
func TestSetNamespaceReadsBack(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	m.Namespace = true
	request := Request{Settings: []Choice{{Setting: "fin-timeout"}}}
	if a, err := SetNamespace(t.Context(), m, request); err != nil || a.Made != 1 || len(a.Left) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
	m, _ = build(t, shapes["laptop"])
	m.Namespace, m.Files = true, deaf{m.Files}
	a, err := SetNamespace(t.Context(), m, request)
	if why := a.Left["fin-timeout"]; err != nil || a.Made != 0 || why == "" {
		t.Errorf("%+v, %v", a, err)
	}
}
