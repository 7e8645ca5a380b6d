package otherruns

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
)

var update = flag.Bool("update", false, "write the table of docs/dev/simulations.md")

func project(t *testing.T) *Table {
	t.Helper()
	table, err := Project()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Every run of the table has a source and ratios inside their intervals, and its form is what
// an editor of the file expects.
func TestProjectRuns(t *testing.T) {
	var strict Table
	d := json.NewDecoder(bytes.NewReader(runsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&strict); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, run := range strict.Runs {
		if run.Source == "" || run.Machine == "" || run.Beside == "" || seen[run.Started] {
			t.Errorf("run of %s: wants a source, a machine and its load, once", run.Started)
		}
		seen[run.Started] = true
		for key, ratios := range run.Ratios {
			for name, r := range ratios {
				if !(0 < r[1] && r[1] <= r[0] && r[0] <= r[2]) {
					t.Errorf("%s, %s, %s: %v", run.Started, key, name, r)
				}
			}
		}
	}
	if len(seen) < 6 {
		t.Errorf("%d runs, want six machines or hours", len(seen))
	}
}

// score counts the ratios of other runs that a run's prediction holds.
type score struct{ inside, all int }

// holdOut predicts from every run, each with the table's runs that are neither it nor the one
// whose ratios are looked for, and counts the ratios of the others that lie in the intervals.
func holdOut(runs []Run, miss func(from, of Run, key, name string, in analysis.Interval)) []score {
	scores := make([]score, len(runs))
	for i, from := range runs {
		for k, of := range runs {
			if i == k {
				continue
			}
			var rest []Ratios
			for l := range runs {
				if l != i && l != k {
					rest = append(rest, runs[l].Ratios)
				}
			}
			for _, key := range analysis.SortedKeys(from.Ratios) {
				intervals, _ := predict(key, from.Ratios[key], rest)
				for _, name := range analysis.SortedKeys(intervals) {
					other, in := of.Ratios[key][name], intervals[name]
					if !other.known() {
						continue
					}
					scores[i].all++
					if in[0] <= other[0] && other[0] <= in[1] {
						scores[i].inside++
					} else {
						miss(from, of, key, name, in)
					}
				}
			}
		}
	}
	return scores
}

// The prediction from each of the project's runs holds at least nine of ten ratios of the
// others, which it has not seen.
func TestPredictionHoldsOtherRuns(t *testing.T) {
	runs := project(t).Runs
	scores := holdOut(runs, func(from, of Run, key, name string, in analysis.Interval) {
		t.Logf("from %s: %s of %s in %s is %.2f, outside %.2f–%.2f", from.Started, key, name, of.Started, of.Ratios[key][name][0], in[0], in[1])
	})
	for i, s := range scores {
		t.Logf("from %s: %d of %d ratios of the others inside", runs[i].Started, s.inside, s.all)
		if s.all == 0 || float64(s.inside) < 0.9*float64(s.all) {
			t.Errorf("from %s: %d of %d ratios of the others inside, want nine of ten", runs[i].Started, s.inside, s.all)
		}
	}
}

// docs/dev/simulations.md has the runs, and what holding them out gave.
func TestPage(t *testing.T) {
	const begin, end = "<!-- runs -->\n", "<!-- /runs -->"
	file := filepath.Join("..", "..", "..", "docs", "dev", "simulations.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %s", file, begin)
	}
	want := before + begin + pageTable(project(t)) + end + after
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is older than runs.json: go test ./internal/analysis/otherruns -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func pageTable(table *Table) string {
	var b strings.Builder
	b.WriteString("\n| run, UTC | machine | beside it | host-gw goodput | VXLAN goodput | VXLAN CPU | VXLAN p50 | ratios of the other runs inside |\n|---|---|---|---:|---:|---:|---:|---:|\n")
	scores := holdOut(table.Runs, func(Run, Run, string, string, analysis.Interval) {})
	for i, run := range table.Runs {
		fmt.Fprintf(&b, "| %s | %s | %s |", run.Started, run.Machine, run.Beside)
		for _, c := range []struct{ key, contender string }{
			{"dts goodput", "flannel-host-gw"}, {"dts goodput", "flannel-vxlan"}, {"dts cpu_per_gbit", "flannel-vxlan"}, {"http-350-30pct network_time_p50", "flannel-vxlan"},
		} {
			cell := "–"
			if r := run.Ratios[c.key][c.contender]; r.known() {
				cell = fmt.Sprintf("%.2f×", r[0])
			}
			b.WriteString(" " + cell + " |")
		}
		fmt.Fprintf(&b, " %d of %d |\n", scores[i].inside, scores[i].all)
	}
	return b.String() + "\n"
}
