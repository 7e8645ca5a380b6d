package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
)

func TestParseFleet(t *testing.T) {
	tests := []struct {
		in   string
		want *analysis.FleetSize
		err  string
	}{
		{"nodes=1000,gbps=2", &analysis.FleetSize{Nodes: 1000, Gbps: 2}, ""},
		{"gbps=0.5,step=dtm,nodes=3", &analysis.FleetSize{Nodes: 3, Gbps: 0.5, Step: "dtm"}, ""},
		{"node=1000,gbps=2", nil, "nodes"},
		{"nodes=many,gbps=2", nil, `"many" is no number`},
		{"nodes=0,gbps=2", nil, "nodes=1000,gbps=2"},
		{"nodes=5,gbps=NaN", nil, "nodes=1000,gbps=2"},
		{"nodes=5,gbps=-1", nil, "nodes=1000,gbps=2"},
		{"nodes=5", nil, "nodes=1000,gbps=2"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := parseFleet(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestReadPrices(t *testing.T) {
	tests := []struct {
		name, text string
		want       *analysis.Prices
		err        string
	}{
		{"all", "currency: EUR\ncore-month: 20\ngib-month: 2.5\nkwh: 0.3\n", &analysis.Prices{Currency: "EUR", CoreMonth: 20, GiBMonth: 2.5, KWh: 0.3}, ""},
		{"some", "core-month: 20\n", &analysis.Prices{CoreMonth: 20}, ""},
		{"unknown key", "core-moth: 20\n", nil, "core-month"},
		{"negative", "kwh: -1\n", nil, "0 or more"},
		{"a word", "kwh: cheap\n", nil, "not a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "prices.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := readPrices(file)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
	if _, err := (&costFlags{prices: "x.yaml"}).options(); err == nil || !strings.Contains(err.Error(), "--fleet") {
		t.Errorf("prices without a fleet: %v", err)
	}
	if _, err := (&costFlags{wattsPerCore: -1}).options(); err == nil {
		t.Error("negative power is taken")
	}
}

func FuzzParseFleet(f *testing.F) {
	f.Add("nodes=1000,gbps=2,step=dtm")
	f.Add("nodes=-1,gbps=NaN")
	f.Fuzz(func(t *testing.T, text string) {
		if fleet, err := parseFleet(text); err == nil && (fleet.Nodes < 1 || !(fleet.Gbps > 0)) {
			t.Errorf("%q: %+v", text, fleet)
		}
	})
}
