package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// later is the report as of another run: without macvlan, with another contender, a kernel and
// a rate of its own, and everything a tenth more.
func later(r *analysis.Report) *analysis.Report {
	r.Run.ID, r.Run.Environment = "later", result.Environment{"kernel.release": "6.19.0"}
	r.Results = slices.DeleteFunc(r.Results, func(x analysis.Result) bool { return x.Contender == "macvlan" })
	for i := range r.Results {
		r.Results[i].Median *= 1.1
		if r.Results[i].Contender == "canal" {
			r.Results[i].Contender = "calico-new"
		}
	}
	for i := range r.Steps {
		if rate, has := r.Steps[i].Params["rate"].(float64); has {
			r.Steps[i].Params["rate"] = rate + 1
		}
	}
	return r
}

func TestOverlay(t *testing.T) {
	a, b := newPage(finite(full()), Page{}), newPage(finite(later(full())), Page{})
	first := slices.Clone(a.Data.Charts)
	p := overlay(a, b, [2]string{"A: monday", "B: tuesday"})
	name := func(c int) string { return p.Data.Contenders[c] }
	goodput := slices.IndexFunc(p.Data.Charts, func(c chart) bool { return c.Kind == "bars" && c.View == viewThroughput })
	var rows []string
	for _, row := range p.Data.Charts[goodput].Rows {
		rows = append(rows, name(row.C))
	}
	var want []string
	for _, row := range first[slices.IndexFunc(first, func(c chart) bool { return c.Kind == "bars" && c.View == viewThroughput })].Rows {
		id := strings.TrimSuffix(name(row.C), " · A")
		if want = append(want, id+" · A"); id != "macvlan" && id != "canal" {
			want = append(want, id+" · B")
		}
	}
	if diff := cmp.Diff(append(want, "calico-new · B"), rows); diff != "" {
		t.Errorf("rows of goodput:\n%s", diff)
	}
	for _, c := range p.Data.Charts {
		for i, of := range c.Table.Of {
			if len(c.Table.Rows[i]) != len(c.Table.Head) || c.Kind != "slopes" && c.Table.Rows[i][0] != name(of) {
				t.Errorf("%s: row %q under %q is of %s", c.Title, c.Table.Rows[i], c.Table.Head, name(of))
			}
		}
	}
	ids := map[string]bool{}
	for _, c := range p.Data.Charts {
		if ids[c.ID] {
			t.Errorf("two charts are %s", c.ID)
		}
		ids[c.ID] = true
	}
	for i, hue := range p.Data.Hues {
		if same := p.Data.Same[i]; hue != p.Data.Hues[same] {
			t.Errorf("%s and %s differ in colour", name(i), name(same))
		}
	}
	for _, r := range p.Data.Results[len(a.Data.Results):] {
		if !p.Data.Second[r.Contender] {
			t.Errorf("a result of B is of %s", name(r.Contender))
		}
	}
	answer := strings.Join(p.Answer, "\n")
	for _, want := range []string{"kernel 6.19.0 in B", "http-350-20k has 20000 requests/s in A and 20001 in B"} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %q in %s", want, answer)
		}
	}
	var out bytes.Buffer
	if err := p.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<b>A: monday</b>", "<b>B: tuesday</b>", `href="#latency"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, no := range []string{`id="choice"`, `id="method"`, `id="findings"`, `id="study"`} {
		if strings.Contains(out.String(), no) {
			t.Errorf("the page has %s", no)
		}
	}
}

// TestLoaded: the chart has the idle path first, and the clock of the tables.
func TestLoaded(t *testing.T) {
	p := newPage(finite(loaded()), Page{})
	i := slices.IndexFunc(p.Data.Charts, func(c chart) bool { return c.Kind == "pairs" })
	if i < 0 {
		t.Fatal("no chart of round trips under load")
	}
	c := p.Data.Charts[i]
	if diff := cmp.Diff([]string{"idle", "1 bulk flow"}, c.Parts); diff != "" || c.View != viewLatency || c.X.Label != "Network time p50" {
		t.Errorf("%s, in %s, by %s", diff, c.View, c.X.Label)
	}
	for _, pair := range c.Pairs {
		if pair.Figures[0] == nil || pair.Figures[1] == nil || pair.Figures[0].Value >= pair.Figures[1].Value {
			t.Errorf("%s: %v", p.Data.Contenders[pair.C], pair.Figures)
		}
	}
	if !slices.ContainsFunc(p.Data.Charts, func(c chart) bool { return c.View == viewThroughput && len(c.Rows) > 0 }) {
		t.Error("the goodput beside the requests is not drawn")
	}
}
