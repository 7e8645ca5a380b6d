package suite

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/suites"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSuites pins what every suite of the catalogue runs.
func TestSuites(t *testing.T) {
	all, err := Load(suites.FS)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s: rounds %s, of %v after %v\n", s.ID, s.RoundsText(), s.Duration, s.Warmup)
		for _, rates := range []string{RatesGiven, RatesAuto} {
			steps, err := s.Expand(rates, nil)
			if err != nil {
				t.Fatal(err)
			}
			if rates == RatesAuto && !ladders(s) {
				continue
			}
			fmt.Fprintf(&b, "  rates %s\n", rates)
			for _, step := range steps {
				fmt.Fprintf(&b, "    %-16s %-10s %-10s %v\n      %s\n", step.ID, step.Workload, step.Path, step.Params, step.Summary)
			}
		}
	}
	const golden = "testdata/suites.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("run with -update if this is meant:\n%s", diff)
	}
}

func ladders(s *Suite) bool {
	for _, step := range s.Steps {
		if step.ladder() {
			return true
		}
	}
	return false
}

// The demo must end within five minutes with nine contenders.
func TestQuickIsQuick(t *testing.T) {
	all, err := Load(suites.FS)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Find(all, "quick")
	if err != nil {
		t.Fatal(err)
	}
	const contenders, upAndDown, startAndStop = 9, 500 * time.Millisecond, 200 * time.Millisecond
	step := s.Warmup + s.Duration + startAndStop
	total := time.Duration(contenders*s.Rounds) * (upAndDown + time.Duration(len(s.Steps))*step)
	if total > 5*time.Minute {
		t.Errorf("the plan of %d rounds and %d steps takes %v", s.Rounds, len(s.Steps), total)
	}
}

func TestFind(t *testing.T) {
	all := []*Suite{{ID: "quick"}, {ID: "throughput"}}
	if s, err := Find(all, "quick"); err != nil || s.ID != "quick" {
		t.Errorf("got %v, %v", s, err)
	}
	_, err := Find(all, "thruput")
	var unknown *text.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "throughput"?`) {
		t.Errorf("got %v", err)
	}
}

func TestExpandUnknownRates(t *testing.T) {
	_, err := (&Suite{}).Expand("gven", nil)
	var unknown *text.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "given"?`) {
		t.Errorf("got %v", err)
	}
}

const head = "id: x\nsummary: s\nstudy: t\nrounds: 1\nduration: 1s\nwarmup: 0s\n"

func TestReadErrors(t *testing.T) {
	step := func(s string) string { return head + "steps:\n" + s }
	tests := []struct{ name, in, want string }{
		{"unknown key", head + "stepz: []\n", `suites/x.yaml:7: unknown key "stepz"; did you mean "steps"?`},
		{"unknown key of a step", step("- id: a\n  workloda: idle\n"), `suites/x.yaml:9: unknown key "workloda"; did you mean "workload"?`},
		{"a duration without a unit", strings.Replace(head, "1s", "fast", 1), `suites/x.yaml: duration: "fast" is not a duration; write it as 3s`},
		{"the file's name", strings.Replace(head, "id: x", "id: y", 1), `suites/x.yaml: id "y"; the file's name wants "x"`},
		{"no study", strings.Replace(head, "study: t", "study:", 1), "summary and study"},
		{"no rounds", strings.Replace(head, "rounds: 1", "rounds: -1", 1), "rounds -1; want 1 or more"},
		{"no duration", strings.Replace(head, "duration: 1s", "duration: 0s", 1), "duration 0s; want one above zero"},
		{"shares of nobody", head + "shares_of: slowst\n", `shares_of: unknown choice "slowst"; did you mean "slowest"?`},
		{"no steps", head, "suites/x.yaml: no steps"},
		{"unknown workload", step("- {id: a, workload: tcp_steam, path: pod}\n"), `suites/x.yaml: step a: unknown workload "tcp_steam"; did you mean "tcp_stream"?`},
		{"unknown parameter", step("- {id: a, workload: tcp_stream, path: pod, params: {stream: 1}}\n"), `suites/x.yaml: step a: unknown tcp_stream parameter "stream"; did you mean "streams"?`},
		{"wrong type", step("- {id: a, workload: tcp_stream, path: pod, params: {streams: many}}\n"), `step a: tcp_stream parameter streams: want a whole number, have many`},
		{"unknown path", step("- {id: a, workload: idle, path: pods}\n"), `step a: unknown path "pods"; did you mean "pod"?`},
		{"no id", step("- {workload: idle, path: pod}\n"), `step 1: id ""`},
		{"an id that leaves the folder", step("- {id: ../a, workload: idle, path: pod}\n"), `step ../a: id "../a"`},
		{"the set-up's id", step("- {id: setup, workload: idle, path: pod}\n"), `step setup: id "setup"`},
		{"a step twice", step("- {id: a, workload: idle, path: pod}\n- {id: a, workload: idle, path: pod}\n"), `suites/x.yaml: step a is there twice`},
		{"a rung twice", step("- {id: 'h-{rate}', workload: http_rate, path: pod, rates: [1000, 1000], shares: [10%]}\n"), `step h-1k is there twice`},
		{"a ladder without a mark", step("- {id: h, workload: http_rate, path: pod, rates: [1000], shares: [10%]}\n"), `needs {rate} in its id`},
		{"a mark without a ladder", step("- {id: 'h-{rate}', workload: http_rate, path: pod}\n"), `{rate} only with rates`},
		{"a ladder without shares", step("- {id: 'h-{rate}', workload: http_rate, path: pod, rates: [1000]}\n"), `give both`},
		{"rate and rates", step("- {id: 'h-{rate}', workload: http_rate, path: pod, params: {rate: 1}, rates: [1000], shares: [10%]}\n"), `give one of them`},
		{"a ladder without a rate", step("- {id: 'i-{rate}', workload: idle, path: pod, rates: [1000], shares: [10%]}\n"), `step i-{rate}: unknown idle parameter "rate"`},
		{"no rate", step("- {id: 'h-{rate}', workload: http_rate, path: pod, rates: [-5], shares: [10%]}\n"), `rate -5; want a number above zero`},
		{"no share", step("- {id: 'h-{rate}', workload: http_rate, path: pod, rates: [5], shares: [half]}\n"), `share "half"; want one such as 30%`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Read("suites/x.yaml", strings.NewReader(tt.in))
			if err == nil {
				t.Fatalf("read %+v", s)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	_, err := Load(fstest.MapFS{"x.yaml": {Data: []byte("id: [\n")}})
	var located *strictyaml.Error
	if !errors.As(err, &located) || located.File != "suites/x.yaml" {
		t.Errorf("got %v", err)
	}
}

// testSuite has a plain step and a ladder.
func testSuite(t *testing.T) *Suite {
	t.Helper()
	s, err := Read("suites/x.yaml", strings.NewReader(head+`steps:
- {id: dts, workload: tcp_stream, path: pod, params: {streams: 1}}
- {id: 'http-{rate}', workload: http_rate, path: pod, rates: [1000], shares: [10%]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSet(t *testing.T) {
	s := testSuite(t)
	changed, err := s.Set([]string{"dts.streams=4", "dts.zerocopy=true", "http-*.threads=18", "http-{rate}.connections=60000", "http-*.response=2KiB"})
	if err != nil {
		t.Fatal(err)
	}
	for _, rates := range []string{RatesGiven, RatesAuto} {
		steps, err := changed.Expand(rates, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p := steps[0].Params; p["streams"] != 4 || p["zerocopy"] != true {
			t.Errorf("dts: %v", p)
		}
		if p := steps[1].Params; p["threads"] != 18 || p["connections"] != 60000 || p["response"] != "2KiB" {
			t.Errorf("%s: %v", steps[1].ID, p)
		}
	}
	if before, err := s.Expand(RatesGiven, nil); err != nil || before[0].Params["streams"] != 1 {
		t.Errorf("the suite itself has changed: %v, %v", before, err)
	}
}

func TestSetErrors(t *testing.T) {
	for change, want := range map[string]string{
		"dts.stream=1":         `dts.stream=1: unknown tcp_stream parameter "stream"; did you mean "streams"?`,
		"dst.streams=1":        `unknown step of suite x "dst"; did you mean "dts"?`,
		"http-1k.threads=1":    `did you mean "http-{rate}"?`,
		"dts.streams=many":     `tcp_stream parameter streams: want a whole number, have many`,
		"dts.streams=1.5":      `want a whole number`,
		"dts.zerocopy=perhaps": `want true or false, have perhaps`,
		"dts":                  `want STEP.PARAMETER=VALUE`,
		"dts=1":                `want STEP.PARAMETER=VALUE`,
		"http-*.rate=5":        `give one of them`,
		"[.streams=1":          `unknown step`,
	} {
		if s, err := testSuite(t).Set([]string{change}); err == nil {
			t.Errorf("%s gave %+v", change, s)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", change, err, want)
		}
	}
}

func TestOnly(t *testing.T) {
	s, err := testSuite(t).Only([]string{"http-*"})
	if err != nil || len(s.Steps) != 1 || s.Steps[0].ID != "http-{rate}" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := testSuite(t).Only([]string{"dts", "dtm"}); err == nil || !strings.Contains(err.Error(), `"dtm"; did you mean "dts"?`) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	files, err := suites.FS.ReadDir(".")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := suites.FS.ReadFile(file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(head + "steps:\n- {id: 'h-{rate}', workload: http_rate, path: pod, rates: [1.5], shares: [10%]}\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Read("suites/quick.yaml", strings.NewReader(in))
		if err != nil {
			return
		}
		for _, rates := range []string{RatesAuto, RatesGiven} {
			steps, err := s.Expand(rates, nil)
			if err != nil || len(steps) == 0 {
				t.Errorf("a suite that was read does not expand: %v", err)
			}
			for _, step := range steps {
				if !stepID.MatchString(step.ID) {
					t.Errorf("step id %q", step.ID)
				}
			}
		}
	})
}
