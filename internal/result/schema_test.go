package result_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/docs/schema"
	"github.com/cnibench/cnibench/internal/result"
)

func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	data, err := schema.FS.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestRunSchema(t *testing.T) {
	s := compile(t, "run-1.schema.json")
	dir, store := create(t)
	store.Close()
	full := read(t, dir, "run.json")

	empty := t.TempDir()
	store, err := result.Create(empty, &result.Run{
		ID: "x", Started: started, Arena: "lab", Baseline: "host",
		Tool: result.Tool{Name: "cnibench"}, Plan: result.Plan{Suite: "quick", Rounds: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()

	for name, text := range map[string]string{
		"every field": full, "the least": read(t, empty, "run.json"), "the specimen": read(t, "testdata/v1", "run.json"), "by turns": read(t, "testdata/v1-turns", "run.json"),
	} {
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"unknown field":         strings.Replace(full, `"arena"`, `"colour": "red", "arena"`, 1),
		"unknown arena":         strings.Replace(full, `"lab"`, `"garage"`, 1),
		"field left out":        strings.Replace(full, `"baseline": "host",`, ``, 1),
		"rounds as text":        strings.Replace(full, `"rounds": 2`, `"rounds": "2"`, 1),
		"no time":               strings.Replace(full, `"2025-11-03T09:30:00Z"`, `"yesterday"`, 1),
		"a number for a text":   strings.Replace(full, `"6.18.0"`, `6.18`, 1),
		"negative seconds":      strings.Replace(full, `"warmup": 0.5`, `"warmup": -0.5`, 1),
		"another version":       strings.Replace(full, `cnibench/run/1`, `cnibench/run/2`, 1),
		"a null in a list":      strings.Replace(full, `"reproduced": [`, `"reproduced": [null,`, 1),
		"parameter of an array": strings.Replace(full, `"rate": "30%"`, `"rate": [1]`, 1),
	} {
		if text == full {
			t.Errorf("%s: the edit did nothing", name)
		}
		if err := validate(t, s, text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSampleSchema(t *testing.T) {
	s := compile(t, "sample-1.schema.json")
	dir, store := create(t)
	every := aSample("host", "every metric", 1)
	for _, m := range result.Metrics() {
		every.Metrics[m.Name] = 0.5
	}
	every.Histograms = map[string]*hdrhistogram.Histogram{"latency": histogram(1), "send_lag": histogram(1)}
	invalid := &result.Sample{Contender: "x", Step: "s", Workload: "w", Path: "pod", Round: 1, Order: 1, Started: started,
		Verdict: result.Invalid, Reasons: []result.Reason{{Code: "above_line_rate", Text: "12 Gbit/s"}}}
	seal(t, store, every, invalid)
	written := strings.TrimSpace(read(t, dir, "samples.jsonl") + read(t, "testdata/v1", "samples.jsonl") + read(t, "testdata/v1-turns", "samples.jsonl"))
	for i, line := range strings.Split(written, "\n") {
		if err := validate(t, s, line); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
	good, _, _ := strings.Cut(written, "\n")
	for name, text := range map[string]string{
		"unknown field":          strings.Replace(good, `"round"`, `"colour":"red","round"`, 1),
		"unknown metric":         strings.Replace(good, `"goodput"`, `"throughput"`, 1),
		"a metric without value": strings.Replace(good, `"goodput":0.5`, `"goodput":null`, 1),
		"a negative metric":      strings.Replace(good, `"goodput":0.5`, `"goodput":-1`, 1),
		"a loss over 1":          strings.Replace(good, `"loss":0.5`, `"loss":1.5`, 1),
		"round 0":                strings.Replace(good, `"round":1`, `"round":0`, 1),
		"unknown verdict":        strings.Replace(good, `"verdict":"valid"`, `"verdict":"splendid"`, 1),
		"invalid without reason": strings.Replace(good, `"verdict":"valid"`, `"verdict":"invalid"`, 1),
		"valid with a reason":    strings.Replace(good, `"notes"`, `"reasons"`, 1),
		"a code with a blank":    strings.Replace(good, `"one_process_per_stream"`, `"one process"`, 1),
		"histogram but no raw":   strings.Replace(good, `"raw":"raw/host/1/every%20metric",`, ``, 1),
		"an unknown clock":       strings.Replace(good, `"latency":"latency.hdr"`, `"sundial":"latency.hdr"`, 1),
	} {
		if text == good {
			t.Errorf("%s: the edit did nothing", name)
		}
		if err := validate(t, s, text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// docs/format.md speaks of every field and every file.
func TestFormatPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"run-1.schema.json", "sample-1.schema.json"} {
		data, err := schema.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fields(doc) {
			if !bytes.Contains(page, []byte("`"+field+"`")) {
				t.Errorf("docs/format.md has no `%s` of %s", field, file)
			}
		}
	}
	for _, m := range result.Metrics() {
		if !result.IsLatency(m.Name) && !strings.HasPrefix(m.Name, "cpu_client_") && !strings.HasPrefix(m.Name, "cpu_server_") &&
			!bytes.Contains(page, []byte("`"+m.Name+"`")) {
			t.Errorf("docs/format.md has no metric `%s`", m.Name)
		}
	}
}

// fields are the names under every "properties" of a schema.
func fields(node any) []string {
	var names []string
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if properties, ok := value.(map[string]any); ok && key == "properties" {
				for name := range properties {
					names = append(names, name)
				}
			}
			names = append(names, fields(value)...)
		}
	case []any:
		for _, value := range node {
			names = append(names, fields(value)...)
		}
	}
	return names
}
