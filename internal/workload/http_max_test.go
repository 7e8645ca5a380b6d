package workload

import (
	"context"
	"strings"
	"testing"
)

// What http_max finds or sets by itself is no parameter of it; all others are http_rate's.
func TestHTTPMaxParams(t *testing.T) {
	max := HTTPMax{}.Info()
	for _, p := range (HTTPRate{}).Info().Params {
		_, err := Complete(max, map[string]any{p.Name: p.Default})
		own := strings.Contains(" rate overload stall every ", " "+p.Name+" ")
		if own != (err != nil) {
			t.Errorf("%s: error %v", p.Name, err)
		}
	}
}

// What can't be searched is refused under http_max's name, before any window begins.
func TestHTTPMaxRefuses(t *testing.T) {
	s := &Session{Params: Params{"response": "big"}}
	s.Begin = func() { t.Error("a window began") }
	if _, err := (HTTPMax{Program: "cnibench"}).Drive(context.Background(), s); err == nil || !strings.Contains(err.Error(), "http_max: ") || !strings.Contains(err.Error(), "write a size as") {
		t.Errorf("error %v", err)
	}
}
