package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/suite"
)

// Without programs of others a suite keeps its ids: the own server and sender take their
// place, and what is left can be expanded.
func TestOwnEngine(t *testing.T) {
	catalogue, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]string{
		"quick":      {"dts": "tcp_bulk", "http-350-{rate}": "http_rate"},
		"throughput": {"idle": "idle", "dts": "tcp_bulk", "dtm": "tcp_bulk", "dus": "udp_bulk", "dum": "udp_bulk", "sts": "tcp_bulk", "stm": "tcp_bulk", "sus": "udp_bulk", "sum": "udp_bulk"},
		"apps":       {"idle": "idle", "tcp": "tcp_bulk", "udp": "udp_bulk"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := catalogue.Suite(name)
			if err != nil {
				t.Fatal(err)
			}
			own, notes, err := ownEngine(s)
			if err != nil || len(notes) == 0 {
				t.Fatal(notes, err)
			}
			got := map[string]string{}
			for _, step := range own.Steps {
				got[step.ID] = step.Workload
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			steps, err := own.Expand(suite.RatesGiven, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				if list := stepPrograms(step.Workload, step.Params); len(list) > 0 {
					t.Errorf("%s runs %v", step.ID, list)
				}
			}
		})
	}
	s, err := catalogue.Suite("micro")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ownEngine(s); arena.AsUnsupported(err) == nil {
		t.Errorf("qperf's suite: %v", err)
	}
}
