package workload

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		info := w.Info()
		if info.Name == "" || info.Summary == "" || seen[info.Name] {
			t.Errorf("%q: a name of its own and a summary are needed", info.Name)
		}
		seen[info.Name] = true
		for _, m := range info.Metrics {
			if _, known := result.LookupMetric(m); !known {
				t.Errorf("%s: metric %s is not in the catalogue", info.Name, m)
			}
		}
		for _, p := range info.Params {
			if p.Help == "" {
				t.Errorf("%s: parameter %s without help", info.Name, p.Name)
			}
		}
		if _, err := Complete(info, nil); err != nil {
			t.Errorf("%s: %v", info.Name, err)
		}
		if got, err := Lookup(info.Name); err != nil || got.Info().Name != info.Name {
			t.Errorf("Lookup(%q): %v", info.Name, err)
		}
	}
}

func TestLookupNames(t *testing.T) {
	_, err := Lookup("tcp_steam")
	var unknown *text.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "tcp_stream"?`) {
		t.Errorf("got %v", err)
	}
}
