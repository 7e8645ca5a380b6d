package importer

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

const publishedPage = "../../docs/published-2024.md"

// TestPublishedPage holds the tables of docs/published-2024.md against the
// tree that CNIBENCH_DATA_2024 names (the whole one or a part); with -update
// and the whole tree it writes them. Without a tree it checks the page's form.
func TestPublishedPage(t *testing.T) {
	page, err := os.ReadFile(publishedPage)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]func(*result.Record) map[string]string{
		"goodput": goodputRows, "efficiency": efficiencyRows,
	}
	for name := range tables {
		if _, _, _, ok := between(string(page), name); !ok {
			t.Fatalf("%s has no table between the comments %s and end of %s", publishedPage, name, name)
		}
	}
	dir := os.Getenv("CNIBENCH_DATA_2024")
	if dir == "" {
		return
	}
	rec, _ := load(t, "infrabuilder", dir)
	text := string(page)
	for name, rows := range tables {
		before, table, after, _ := between(text, name)
		got := rows(rec)
		if *update {
			head := strings.SplitAfterN(strings.TrimLeft(table, "\n"), "\n", 3)
			body := strings.Join(slices.SortedFunc(maps.Values(got), cmp.Compare), "")
			text = before + "\n" + head[0] + head[1] + body + after
			continue
		}
		for id, row := range got {
			if !strings.Contains(table, row) {
				t.Errorf("%s: the table %s does not have the row of %s: %s", publishedPage, name, id, row)
			}
		}
	}
	if *update {
		if err := os.WriteFile(publishedPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// between cuts a page at the comments around a table.
func between(page, name string) (before, table, after string, ok bool) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	i, j := strings.Index(page, begin), strings.Index(page, end)
	if i < 0 || j < i {
		return "", "", "", false
	}
	return page[:i+len(begin)], page[i+len(begin) : j], page[j:], true
}

// goodputRows are the medians of the report.
func goodputRows(rec *result.Record) map[string]string {
	medians := map[string]map[string]float64{}
	for _, r := range report.Analyse(rec, analysis.Options{}).Results {
		if medians[r.Contender] == nil {
			medians[r.Contender] = map[string]float64{}
		}
		medians[r.Contender][r.Step+" "+r.Metric] = r.Median
	}
	rows := map[string]string{}
	for id, m := range medians {
		row := "| " + id
		for _, step := range strings.Fields("dts dtm sts stm dus dum sus sum") {
			v, ok := m[step+" goodput"]
			switch loss := m[step+" loss"]; {
			case !ok:
				row += " | –"
			case loss > 0.10:
				row += fmt.Sprintf(" | %.2f (%.0f %% lost)", v/1e9, 100*loss)
			default:
				row += fmt.Sprintf(" | %.2f", v/1e9)
			}
		}
		rows[id] = row + " |\n"
	}
	return rows
}

// efficiencyRows are the study's formulas over what its summaries hold:
// 1000 × the greatest of the runs' mean of client and server of user and
// system, by the best goodput of the runs; memory over bare metal, the
// greatest of runs and sides, of which the summaries' mean of both sides is
// what an imported run has.
func efficiencyRows(rec *result.Record) map[string]string {
	type at struct{ contender, step string }
	cpu, best, ours, memory := map[at]float64{}, map[at]float64{}, map[at][]float64{}, map[at]float64{}
	for _, s := range rec.Samples {
		k := at{s.Contender, s.Step}
		m := s.Metrics
		memory[k] = max(memory[k], m["memory_used"])
		if s.Verdict != result.Valid || m["cpu_per_gbit_user_system"] == 0 {
			continue
		}
		cpu[k] = max(cpu[k], (m["cpu_client_user"]+m["cpu_client_system"]+m["cpu_server_user"]+m["cpu_server_system"])/2)
		best[k] = max(best[k], m["goodput"]/1e9)
		ours[k] = append(ours[k], 1e3*m["cpu_per_gbit_user_system"])
	}
	rows := map[string]string{}
	for _, c := range rec.Run.Contenders {
		row := "| " + c.ID
		for _, step := range []string{"dts", "dtm", "stm"} {
			k := at{c.ID, step}
			if best[k] == 0 {
				row += " | – | –"
				continue
			}
			row += fmt.Sprintf(" | ≥ %.1f | ≥ %.1f", 1e3*cpu[k]/best[k], stat.Median(ours[k]))
		}
		for _, step := range []string{"idle", "dtm"} {
			if c.ID == rec.Run.Baseline {
				row += " | 0"
				continue
			}
			row += fmt.Sprintf(" | %.0f", (memory[at{c.ID, step}]-memory[at{rec.Run.Baseline, step}])/(1<<20))
		}
		rows[c.ID] = row + " |\n"
	}
	return rows
}
