package report

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/perf/benchfmt"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/text"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/schema/report-1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchema(t *testing.T) {
	s := schema(t)
	for name, r := range samples {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(write(t, "json", r, Options{})))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaIsStrict: what a report never holds, the schema refuses.
func TestSchemaIsStrict(t *testing.T) {
	s := schema(t)
	result := func(doc map[string]any) map[string]any { return doc["results"].([]any)[1].(map[string]any) }
	for name, spoil := range map[string]func(map[string]any){
		"unknown key":             func(d map[string]any) { d["extra"] = 1 },
		"unknown key in a result": func(d map[string]any) { result(d)["extra"] = 1 },
		"unknown key in the run":  func(d map[string]any) { d["run"].(map[string]any)["extra"] = 1 },
		"no tier":                 func(d map[string]any) { delete(result(d), "tier") },
		"tier below 0":            func(d map[string]any) { result(d)["tier"] = -1 },
		"median null":             func(d map[string]any) { result(d)["median"] = nil },
		"interval of three":       func(d map[string]any) { result(d)["ci"] = []any{1, 2, 3} },
		"better sideways":         func(d map[string]any) { result(d)["better"] = "sideways" },
		"confidence above 1":      func(d map[string]any) { result(d)["confidence"] = 95 },
		"results null":            func(d map[string]any) { d["results"] = nil },
		"severity unknown":        func(d map[string]any) { d["findings"].([]any)[0].(map[string]any)["severity"] = "fatal" },
		"other schema":            func(d map[string]any) { d["schema"] = "cnibench/report/2" },
		"start in words":          func(d map[string]any) { d["run"].(map[string]any)["started"] = 7 },
	} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(write(t, "json", sample(6), Options{})), &doc); err != nil {
			t.Fatal(err)
		}
		spoil(doc)
		if s.Validate(doc) == nil {
			t.Errorf("%s: the schema lets it pass", name)
		}
	}
}

func TestJSONReadsBack(t *testing.T) {
	r := sample(6)
	var got analysis.Report
	if err := json.Unmarshal([]byte(write(t, "json", r, Options{})), &got); err != nil {
		t.Fatal(err)
	}
	got.Contenders, got.Steps, got.Curves, got.Plan, got.Tool = r.Contenders, r.Steps, r.Curves, r.Plan, r.Tool
	if diff := cmp.Diff(*r, got, cmpopts.IgnoreFields(analysis.Finding{}, "Note")); diff != "" {
		t.Error(diff)
	}
}

func TestCSVReadsBack(t *testing.T) {
	for name, r := range samples {
		got := write(t, "csv", r, Options{})
		rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(r.Results)+1 {
			t.Fatalf("%s: %d rows, want %d", name, len(rows), len(r.Results)+1)
		}
		for i, row := range rows[1:] {
			res := r.Results[i]
			median, err := strconv.ParseFloat(row[slices.Index(csvHeader, "median")], 64)
			// The reader takes a carriage return before a line feed away; names have none.
			if contender := row[slices.Index(csvHeader, "contender")]; err != nil || median != res.Median || unguard(contender) != text.Safe(res.Contender) {
				t.Errorf("%s: row %d reads back as %q", name, i+1, row)
			}
		}
		checkCSV(t, rows)
	}
}

// TestGuard: what a spreadsheet executes is text; all texts read back.
func TestGuard(t *testing.T) {
	for text, want := range map[string]string{
		"flannel-vxlan":       "flannel-vxlan",
		"a, b; c - d":         "a, b; c - d",
		"":                    "",
		"=1+1":                "'=1+1",
		"+1":                  "'+1",
		"-1":                  "'-1",
		"@SUM(A1)":            "'@SUM(A1)",
		"＝1":                  "'＝1",
		"\t=1":                "'\t'=1",
		"'=1":                 "''=1",
		"x;=1":                "x;'=1",
		`x",=cmd|' /C calc'!`: `x",'=cmd|' /C calc'!`,
	} {
		if got := guard(text); got != want || unguard(got) != text {
			t.Errorf("%q is written as %q and read as %q, want %q", text, got, unguard(got), want)
		}
	}
}

var guarded = regexp.MustCompile(`(^|[;,\t\r\n"])'`)

func unguard(s string) string { return guarded.ReplaceAllString(s, "$1") }

// checkCSV asks that no cell of a name begins as a formula does.
func checkCSV(t *testing.T, rows [][]string) {
	t.Helper()
	for _, row := range rows {
		for i, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); err != nil && csvHeader[i] != "values" && strings.IndexAny(cell, "=+-@\t\r＝＋－＠") == 0 {
				t.Errorf("csv: %s %q begins a formula", csvHeader[i], cell)
			}
		}
	}
}

// TestCSVHasAllFields: a field that the JSON form gains must come here too.
func TestCSVHasAllFields(t *testing.T) {
	var doc struct{ Results []map[string]any }
	r := sample(6)
	r.Results[1].MDD, r.Results[1].RoundsFor5 = new(float64), 9 // left out where they are not known
	if err := json.Unmarshal([]byte(write(t, "json", r, Options{})), &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{"run", "arena", "suite", "baseline", "emulated"} // of the run
	for _, key := range slices.Sorted(maps.Keys(doc.Results[1])) {
		switch key {
		case "ci":
			want = append(want, "ci_low", "ci_high")
		case "vs_baseline":
			want = append(want, "vs_baseline_ratio", "vs_baseline_ci_low", "vs_baseline_ci_high", "vs_baseline_p")
		default:
			want = append(want, key)
		}
	}
	got := slices.Clone(csvHeader)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBenchstatReadsBack(t *testing.T) {
	for name, r := range samples {
		values := 0
		reader := benchfmt.NewReader(strings.NewReader(write(t, "benchstat", r, Options{})), name)
		for reader.Scan() {
			switch rec := reader.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Errorf("%s: %v", name, rec)
			case *benchfmt.Result:
				values += len(rec.Values)
				if rec.GetConfig("kernel") != "6.18.0" {
					t.Errorf("%s: %s without a kernel", name, rec.Name)
				}
				if _, parts := rec.Name.Parts(); len(parts) == 0 || !strings.HasPrefix(string(parts[len(parts)-1]), "/path=") {
					t.Errorf("%s: %s does not end in its path", name, rec.Name)
				}
			}
		}
		if reader.Err() != nil {
			t.Error(reader.Err())
		}
		want := 0
		for _, res := range r.Results {
			want += len(res.Values)
		}
		if values != want {
			t.Errorf("%s: %d values, want %d", name, values, want)
		}
	}
}

// TestNoControlCharacters: what others wrote moves no cursor, whatever the format.
func TestNoControlCharacters(t *testing.T) {
	r := hostile()
	for i := range r.Contenders {
		r.Contenders[i].ID += "\u009b2J"
	}
	for _, format := range Formats() {
		if out := write(t, format, r, Options{}); text.Safe(out) != out {
			t.Errorf("%s holds control characters", format)
		}
	}
}

// FuzzNames: whatever a contender is called, every format keeps its shape.
func FuzzNames(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := &analysis.Report{Schema: analysis.ReportSchema, Baseline: "host"}
		add(r, name, name, "goodput", 6, []string{"host", name}, []float64{2e9, 1e9}, []int{1, 2})
		r.Findings = []analysis.Finding{{Severity: "info", Code: name, Contender: name, Text: name, Next: name}}
		checkHostile(t, write(t, "html", r, Options{}))
		rows, err := csv.NewReader(strings.NewReader(write(t, "csv", r, Options{}))).ReadAll()
		if err != nil || len(rows) != 3 {
			t.Errorf("csv: %d rows, %v", len(rows), err)
		}
		checkCSV(t, rows)
		table := 0
		for _, line := range strings.Split(write(t, "md", r, Options{}), "\n") {
			if strings.HasPrefix(line, "|") {
				table++
				if got := len(cellEnd.FindAllString(line, -1)); got != 3 && got != 5 {
					t.Errorf("md: %d bars in %q", got, line)
				}
			}
		}
		if table != 4+3 { // goodput of two contenders, one finding
			t.Errorf("md: %d table lines", table)
		}
		reader := benchfmt.NewReader(strings.NewReader(write(t, "benchstat", r, Options{})), "fuzz")
		for reader.Scan() {
			if err, bad := reader.Result().(*benchfmt.SyntaxError); bad {
				t.Error(err)
			}
		}
		checkOpenMetrics(t, write(t, "openmetrics", r, Options{}))
	})
}

// cellEnd is a bar that no backslash takes its meaning from.
var cellEnd = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\|`)
