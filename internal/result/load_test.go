package result_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

var update = flag.Bool("update", false, "write golden files")

// lines are three samples as Seal writes them.
func lines(t *testing.T) (dir string, text string) {
	t.Helper()
	dir, s := create(t)
	seal(t, s, aSample("host", "dts", 1), aSample("flannel", "dts", 1), aSample("host", "dts", 2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, read(t, dir, "samples.jsonl")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoadLeavesBadLinesOut(t *testing.T) {
	_, text := lines(t)
	all := strings.SplitAfter(text, "\n")
	one, two, three := all[0], all[1], all[2]
	edit := func(old, new string) string {
		t.Helper()
		if !strings.Contains(two, old) {
			t.Fatalf("no %s in %s", old, two)
		}
		return one + strings.Replace(two, old, new, 1) + three
	}
	tests := map[string]struct {
		text    string
		samples int
		line    int // of the only fault; 0 means none
		fault   string
	}{
		"whole":                   {text, 3, 0, ""},
		"empty":                   {"", 0, 0, ""},
		"empty lines":             {one + "\n \n" + two, 2, 0, ""},
		"last newline missing":    {strings.TrimSuffix(text, "\n"), 3, 0, ""},
		"last line half written":  {text[:len(text)-20], 2, 3, "half-written sample"},
		"bad line in the middle":  {one + "{\n" + three, 2, 2, "it is left out, the others count"},
		"binary":                  {one + "\x00\xff\n" + three, 2, 2, "invalid character"},
		"two objects on a line":   {one + strings.TrimSpace(two) + three, 1, 2, "after top-level value"},
		"a huge number":           {edit(`"rate":10000`, `"rate":1e999`), 2, 2, "1e999"},
		"not a number":            {edit(`"rate":10000`, `"rate":NaN`), 2, 2, "invalid character"},
		"no number":               {edit(`"rate":10000`, `"rate":null`), 2, 2, `metric "rate" has no value`},
		"a number as text":        {edit(`"rate":10000`, `"rate":"10000"`), 2, 2, "string"},
		"another schema":          {edit("cnibench/sample/1", "x"), 2, 2, "unknown version"},
		"no contender":            {edit(`"contender":"flannel"`, `"contender":""`), 2, 2, "no contender"},
		"no step":                 {edit(`"step":"dts"`, `"step":""`), 2, 2, "no step"},
		"round 0":                 {edit(`"round":1`, `"round":0`), 2, 2, "round 0"},
		"unknown verdict":         {edit(`"valid"`, `"splendid"`), 2, 2, "splendid"},
		"a field from the future": {edit(`"round":1`, `"round":1,"colour":"red"`), 3, 0, ""},
		"sealed twice":            {text + one, 3, 4, "that one counts"},
		"a very long line":        {one + `{"x":"` + strings.Repeat("x", 5<<20) + "\"}\n" + three, 2, 2, "longer than"},
		"an unending line":        {one + strings.Repeat("[", 5<<20), 1, 2, "longer than"},
		"deep nesting":            {one + strings.Repeat("[", 1<<20) + "\n" + three, 2, 2, "depth"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, _ := lines(t)
			put(t, dir, "samples.jsonl", test.text)
			r := load(t, dir)
			if len(r.Samples) != test.samples {
				t.Errorf("%d samples, want %d", len(r.Samples), test.samples)
			}
			switch {
			case test.line == 0 && len(r.Faults) > 0:
				t.Error(r.Faults)
			case test.line == 0:
			case len(r.Faults) != 1, r.Faults[0].File != "samples.jsonl", r.Faults[0].Line != test.line, !strings.Contains(r.Faults[0].Text, test.fault):
				t.Errorf("%+v, want line %d and %q", r.Faults, test.line, test.fault)
			}
		})
	}
}

// Samples of a newer cnibench are no damage: half a run must not pass for one.
func TestLoadRefusesNewerSamples(t *testing.T) {
	dir, text := lines(t)
	put(t, dir, "samples.jsonl", strings.Replace(text, "cnibench/sample/1", "cnibench/sample/2", 1))
	_, err := result.Load(dir)
	if !errors.Is(err, result.ErrVersion) || !strings.Contains(err.Error(), "line 1: ") || !strings.Contains(err.Error(), "use a newer cnibench") {
		t.Errorf("%v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	good := func() string { dir, _ := create(t); return read(t, dir, "run.json") }()
	tests := map[string]struct {
		run  string
		want error
		text string
	}{
		"a newer version":   {strings.Replace(good, "cnibench/run/1", "cnibench/run/12", 1), result.ErrVersion, "it is cnibench/run/12 and this program reads up to cnibench/run/1; use a newer cnibench"},
		"no version":        {`{}`, result.ErrVersion, `schema ""`},
		"a foreign schema":  {`{"schema":"knb/3"}`, result.ErrVersion, `schema "knb/3"`},
		"a negative":        {`{"schema":"cnibench/run/-1"}`, result.ErrVersion, "unknown version"},
		"broken JSON":       {good[:len(good)/2], nil, "unexpected end of JSON"},
		"a wrong type":      {strings.Replace(good, `"rounds": 2`, `"rounds": "2"`, 1), nil, "rounds"},
		"an enormous thing": {strings.Repeat(" ", 17<<20), nil, "larger than"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, s := create(t)
			s.Close()
			put(t, dir, "run.json", test.run)
			_, err := result.Load(dir)
			if err == nil || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), filepath.Join(dir, "run.json")) {
				t.Fatal(err)
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Error(err)
			}
			if _, _, err := result.Resume(dir); err == nil {
				t.Error("resumed")
			}
		})
	}
	dir, s := create(t)
	s.Close()
	for name, dir := range map[string]string{
		"nothing there": filepath.Join(dir, "nothing"), "a file": filepath.Join(dir, "run.json"), "another folder": t.TempDir(),
	} {
		if _, err := result.Load(dir); !errors.Is(err, result.ErrNoRun) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := result.Resume(dir); !errors.Is(err, result.ErrNoRun) {
			t.Errorf("%s: resume: %v", name, err)
		}
	}
}

func TestHistogramsThatCannotBeRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.hdr")
	if data, err := histogram(1).Encode(hdrhistogram.V2CompressedEncodingCookieBase); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(outside, data, 0o644); err != nil {
		t.Fatal(err)
	}
	wide, err := hdrhistogram.New(1, 1<<62, 5).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		spoil func(t *testing.T, dir, file string)
		text  string
	}{
		"missing": {func(t *testing.T, dir, file string) { os.Remove(filepath.Join(dir, file)) }, "no such file"},
		"empty":   {func(t *testing.T, dir, file string) { put(t, dir, file, "") }, "not a histogram"},
		"corrupt": {func(t *testing.T, dir, file string) { put(t, dir, file, "AAAA!") }, "not a histogram"},
		"huge":    {func(t *testing.T, dir, file string) { put(t, dir, file, strings.Repeat("A", 5<<20)) }, "larger than"},
		"wide":    {func(t *testing.T, dir, file string) { put(t, dir, file, string(wide)) }, "over the limit"},
		"a pipe": {func(t *testing.T, dir, file string) {
			os.Remove(filepath.Join(dir, file))
			if err := syscall.Mkfifo(filepath.Join(dir, file), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		"a link out": {func(t *testing.T, dir, file string) {
			os.Remove(filepath.Join(dir, file))
			if err := os.Symlink(outside, filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}, "escapes"},
		"a path out": {func(t *testing.T, dir, file string) {
			rel, err := filepath.Rel(filepath.Join(dir, filepath.Dir(file)), outside)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, "samples.jsonl", strings.Replace(read(t, dir, "samples.jsonl"), "latency.hdr", filepath.ToSlash(rel), 1))
		}, "escapes"},
		"an absolute path": {func(t *testing.T, dir, file string) {
			put(t, dir, "samples.jsonl", strings.Replace(read(t, dir, "samples.jsonl"), "latency.hdr", filepath.ToSlash(outside), 1))
		}, "no such file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, s := create(t)
			sample := aSample("host", "http", 1)
			sample.Histograms = map[string]*hdrhistogram.Histogram{"latency": histogram(60_000), "send_lag": histogram(1)}
			seal(t, s, sample)
			test.spoil(t, dir, sample.Raw+"/latency.hdr")
			r := load(t, dir)
			if len(r.Samples) != 1 || len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Text, test.text) {
				t.Fatalf("%d samples, faults %+v", len(r.Samples), r.Faults)
			}
			if h := r.Samples[0].Histograms; h["latency"] != nil || h["send_lag"] == nil {
				t.Error(h)
			}
		})
	}
}

// The specimens are frozen: every version that was ever released is read for
// ever, and gives what it gave on the day it was frozen.
func TestSpecimens(t *testing.T) {
	dirs, err := filepath.Glob("testdata/v*")
	if err != nil || len(dirs) < 1 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		if filepath.Ext(dir) == ".golden" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r := load(t, dir)
			got, err := json.MarshalIndent(struct {
				*result.Record
				Percentiles map[string]map[string]int64
			}{r, percentiles(r)}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := dir + ".golden"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// percentiles shows the histograms, p99 in nanoseconds by raw folder and clock.
func percentiles(r *result.Record) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for _, s := range r.Samples {
		for clock, h := range s.Histograms {
			if all[s.Raw] == nil {
				all[s.Raw] = map[string]int64{}
			}
			all[s.Raw][clock] = h.ValueAtPercentile(99)
		}
	}
	return all
}
