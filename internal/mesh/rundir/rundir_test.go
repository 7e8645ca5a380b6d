package rundir

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/result/verify"
)

// TestRoundTrip: a report from the run directory is the one that was made when it was measured,
// an interrupted mesh goes on, and verify agrees.
func TestRoundTrip(t *testing.T) {
	plan := mesh.DefaultPlan([]mesh.Node{{Name: "a", Zone: "x"}, {Name: "b.example"}, {Name: "c"}})
	plan.Seed = 7
	var figures []mesh.Figure
	for i := range 3 {
		for j := range 3 {
			if p := (mesh.Pair{From: i, To: j}); i != j {
				figures = append(figures,
					mesh.Figure{Pair: p, Path: mesh.Pod, Probes: 300, Late: i == 2, Values: map[mesh.Metric]float64{mesh.RTT: 1e-4, mesh.Loss: 0.01, mesh.MTU: 1450}},
					mesh.Figure{Pair: p, Path: mesh.Pod, Values: map[mesh.Metric]float64{mesh.Goodput: 1e9}},
					mesh.Figure{Pair: p, Path: mesh.Host, Trial: 1 + 3*i + j, Values: map[mesh.Metric]float64{mesh.Goodput: 5e8}})
			}
		}
	}
	figures = append(figures, mesh.Figure{Path: mesh.Host, Held: 2, Values: map[mesh.Metric]float64{}},
		mesh.Figure{Pair: mesh.Pair{From: 1, To: 1}, Path: mesh.Host, Gone: true, Values: map[mesh.Metric]float64{}})
	dir := filepath.Join(t.TempDir(), "run")
	now := time.Unix(1e9, 0)
	m := &Mesh{Plan: plan, Contender: "c"}
	run, err := New(dir, result.Tool{Name: "cnibench"}, "lab", "c", plan, []string{"d: its pod does not start"}, map[string]string{"mtu": "1500"}, now)
	if err != nil {
		t.Fatal(err)
	}
	store, err := result.Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	half := len(figures) / 2
	if err := m.Seal(store, figures[:half], now); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, rec, err := result.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, is, err := Read(rec)
	if err != nil || !is {
		t.Fatal(is, err)
	}
	if err := again.Seal(store, figures[half:], now); err != nil {
		t.Fatal(err)
	}
	if err := store.End(now); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if rec, err = result.Load(dir); err != nil {
		t.Fatal(err)
	}
	back, _, err := Read(rec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(figures, back.Figures); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"mtu": "1500"}, back.Settings); diff != "" {
		t.Error(diff)
	}
	want := plan.Report(figures)
	want.Absent = []string{"d: its pod does not start"}
	if diff := cmp.Diff(want, back.Report()); diff != "" {
		t.Error(diff)
	}
	if want.Held != 2 || !cmp.Equal(want.Gone, []string{"b.example"}) {
		t.Errorf("held at %d, gone %v", want.Held, want.Gone)
	}
	if v, err := verify.Run(dir); err != nil || len(v.Problems) > 0 || !v.Ended {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

func TestReadNoMesh(t *testing.T) {
	if _, is, err := Read(&result.Record{}); is || err != nil {
		t.Error(is, err)
	}
}

// FuzzRead: whatever a run directory says, a mesh is read and judged, or refused.
func FuzzRead(f *testing.F) {
	f.Add(`{"nodes":[{"name":"a"},{"name":"b"}],"probes":300,"rate":1000}`, "burst 0 a>b pod", "again 3 b>a host", 1e9)
	f.Add(`{"nodes":[{"name":"a"},{"name":"a"}],"partners":-1,"matchings":2147483647,"senders":-5}`, "light 0 a>a pod", "held 0 a>b host", 1e308)
	f.Add(`{"nodes":null}`, "gone 99999999999999999999 >", "", -1.0)
	f.Fuzz(func(t *testing.T, plan, step, other string, value float64) {
		if len(plan) > 1<<12 {
			return // many nodes take long and show nothing more
		}
		rec := &result.Record{Run: result.Run{Plan: result.Plan{Contenders: []result.Entry{{ID: "c"}}, Settings: map[string]string{planKey: plan}}}}
		for _, s := range []string{step, other} {
			metrics := map[string]float64{heldName: value, probesName: value}
			for _, name := range names {
				metrics[name] = value
			}
			rec.Samples = append(rec.Samples, result.Sample{Step: s, Metrics: metrics})
		}
		if m, is, err := Read(rec); is && err == nil {
			m.Report()
		}
	})
}
