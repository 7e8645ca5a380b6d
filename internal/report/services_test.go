package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

// swept is a run over numbers of Services: list's latency grows with them,
// map's does not.
func swept() *analysis.Report {
	params := map[string]any{"rate": 500.0}
	r := &analysis.Report{
		Run: analysis.RunInfo{ID: "r", Suite: "services", Arena: "lab", Rounds: 1}, Baseline: "host",
		Steps: []result.Step{{ID: "pod-connect", Workload: "tcp_crr", Path: "pod", Params: params, Summary: "pod to pod"}},
	}
	add := func(contender, step, metric, unit string, v float64) {
		r.Results = append(r.Results, analysis.Result{Contender: contender, Step: step, Metric: metric, Unit: unit, Better: "lower", N: 1, Median: v, Values: []float64{v}})
	}
	add("host", "pod-connect", "latency_p50", "s", 40e-6)
	add("list", "pod-connect", "latency_p50", "s", 60e-6)
	for _, n := range []int{1, 10000} {
		id := fmt.Sprintf("connect-svc%d", n)
		r.Steps = append(r.Steps, result.Step{ID: id, Workload: "tcp_crr", Path: "service", Params: params, Services: n,
			Summary: fmt.Sprintf("pod to Service, beside %d other Services", n)})
		add("list", id, "latency_p50", "s", 100e-6*(1+float64(n)/10000))
		add("map", id, "latency_p50", "s", 80e-6)
		add("map", id, "service_sync_time", "s", float64(n)/1000)
	}
	return r
}

func TestScales(t *testing.T) {
	v := &sheet{layout.New(swept())}
	all := v.Scales()
	if len(all) != 1 || all[0].Name() != "connect" || all[0].About() != "pod to Service" || all[0].Direct != "pod-connect" {
		t.Fatalf("%+v", all)
	}
	got := map[string][][]string{}
	for _, one := range all[0].Tables(&v.Groups[0], true) {
		rows := [][]string{append([]string{""}, one.Head...)}
		for _, r := range one.Rows {
			row := []string{r.ID}
			for _, cell := range r.Cells {
				row = append(row, layout.ValueOr(cell))
			}
			rows = append(rows, append(row, r.Grown))
		}
		got[one.Metric] = rows
	}
	want := map[string][][]string{
		"latency_p50": {
			{"", "no Service", "1", "10,000"},
			{"host", "40 µs", "–", "–", ""},
			{"list", "60 µs", "100 µs", "200 µs", "2.00×"},
			{"map", "–", "80 µs", "80 µs", "1.00×"},
		},
		"service_sync_time": {{"", "1", "10,000"}, {"map", "1 ms", "10 s", "10,000×"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if charts := v.scaleCharts(&v.Groups[0], all[0], true, v.colors()); len(charts) != 2 || len(charts[0].Series) != 2 || len(charts[0].Series[0].Points) != 2 {
		t.Errorf("%+v", charts)
	}
	if f := v.families(&v.Groups[0], "rate", "rate"); len(f) != 0 {
		t.Errorf("numbers of Services are no rates: %+v", f)
	}
}

// Every number of Services is told once, in each form, and whose time it took.
func TestScalesAreWritten(t *testing.T) {
	for format, want := range map[string]string{
		string(Text): "10,000 by 1", string(Markdown): "| no Service | 1 | 10,000 | 10,000 by 1 |", string(HTML): "Latency p50 by number of Services, connect",
	} {
		var b bytes.Buffer
		if err := Write(&b, format, swept(), Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: no %q in %s", format, want, b.String())
		}
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "cnibench itself programs the Services") {
			t.Errorf("%s does not say whose time to program Services is told", format)
		}
	}
}
