package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/load/serve"
)

var update = flag.Bool("update", false, "write the golden files")

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, tt := range []struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 99.9, 100}, {hundred, 0, 1}, {[]time.Duration{7}, 50, 7}, {nil, 50, 0}} {
		if got := percentile(tt.values, tt.q); got != tt.want {
			t.Errorf("p%v of %d values is %d, want %d", tt.q, len(tt.values), got, tt.want)
		}
	}
}

// Ten requests a second, and a stall from 250 to 450 ms: those planned for
// 300 and 400 ms wait until its end.
func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	stalls := []serve.Interval{{From: testStart.Add(250 * ms), To: testStart.Add(450 * ms)}}
	got := waits(testStart, 10, time.Second, stalls)
	if d := cmp.Diff([]time.Duration{0, 0, 0, 150 * ms, 50 * ms, 0, 0, 0, 0, 0}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	p := &page{w: &b}
	p.section("Speed", "How it was done.")
	p.table([][]string{{"client", "p50"}, {"wrk", micro(12.34e-6)}, {"cnibench", milli(0.1983)}})
	p.limits([]load.Limit{{Code: "cpu_contended", Text: "something else runs there"}})
	p.reach(true, "%s above; at most %s", formatSigned(3.3e-6), micro(10e-6))
	p.reach(false, "%s of wrk's rate", ratio(0.98765))
	p.summary()
	if p.missed != 1 {
		t.Errorf("%d goals missed, want 1", p.missed)
	}
	const golden = "testdata/page.md"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("run with -update if this is meant:\n%s", d)
	}
}
