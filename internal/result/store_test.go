package result_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

var started = time.Date(2025, 11, 3, 9, 30, 0, 0, time.UTC)

// aRun uses every field.
func aRun() *result.Run {
	return &result.Run{
		ID:       "20251103-093000-quick",
		Tool:     result.Tool{Name: "cnibench", Version: "0.1.0", Commit: "0123abc"},
		Started:  started,
		Arena:    "lab",
		Baseline: "host",
		Plan: result.Plan{
			Suite: "quick", Rounds: 2, Seed: math.MaxUint64, Duration: 2.5, Warmup: 0.5,
			Contenders: []result.Entry{{ID: "host", Underlay: "switch"}, {ID: "host", Underlay: "vpc"}},
			Steps: []result.Step{{
				ID: "http-350", Summary: "350-byte responses", Workload: "http_rate", Path: "pod",
				Params: map[string]any{"rate": "30%", "size": 100.0, "keepalive": true},
			}},
			Settings: map[string]string{"nodes": "2"},
			Capacity: map[string]float64{"http_rate size=100": 41000},
		},
		Contenders: []result.ContenderInfo{{
			ID: "flannel-vxlan", Product: "Flannel", Version: "0.24", Summary: "bridge and VXLAN",
			Datapath: "bridge × vxlan × kube-proxy", Overhead: 50,
			Own: []string{"bridge CNI plugin"}, Reproduced: []string{"VXLAN device"},
		}},
		Unsupported: []result.Unsupported{{Contender: "ipvlan", Reason: "kernel lacks ipvlan", Remedy: "run with --arena microvm"}},
		Environment: result.Environment{"kernel.release": "6.18.0"},
	}
}

func aSample(contender, step string, round int) *result.Sample {
	return &result.Sample{
		Contender: contender, Kernel: "6.18.0", Underlay: "switch", Round: round, Order: 1,
		Step: step, Workload: "http_rate", Path: "pod", Started: started, Elapsed: 2.5,
		Verdict: result.Valid,
		Notes:   []result.Reason{{Code: "one_process_per_stream", Text: "iperf3 3.12 has one thread"}},
		Metrics: map[string]float64{"rate": 10000, "latency_p50": 65e-6},
	}
}

func histogram(values ...int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for _, v := range values {
		if err := h.RecordValue(v); err != nil {
			panic(err)
		}
	}
	return h
}

func create(t *testing.T) (string, *result.Store) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deep", "run")
	s, err := result.Create(dir, aRun())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return dir, s
}

func load(t *testing.T, dir string) *result.Record {
	t.Helper()
	r, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seal(t *testing.T, s *result.Store, samples ...*result.Sample) {
	t.Helper()
	for _, sample := range samples {
		if err := s.Seal(sample); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, folder *result.Folder, name, text string) {
	t.Helper()
	w, err := folder.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// histograms compares by contents.
var histograms = cmp.Comparer(func(a, b *hdrhistogram.Histogram) bool { return a.Equals(b) })

func TestWhatIsSealedIsLoaded(t *testing.T) {
	dir, s := create(t)
	first := aSample("host", "http-350", 1)
	first.Histograms = map[string]*hdrhistogram.Histogram{"latency": histogram(60_000, 70_000), "send_lag": histogram(0, 500)}
	write(t, s.Raw(first), "client.json", "{}")
	second := aSample("host", "setup", 1)
	second.Verdict, second.Reasons = result.Invalid, []result.Reason{{Code: "x", Text: "<b>&"}}
	seal(t, s, first, second)

	want := &result.Record{Run: *aRun(), Samples: []result.Sample{*first, *second}}
	want.Run.Schema = result.RunSchema
	got := load(t, dir)
	if diff := cmp.Diff(want, got, histograms); diff != "" {
		t.Error(diff)
	}
	if first.Raw != "raw/host/1/http-350" || second.Raw != "" {
		t.Errorf("raw folders %q and %q", first.Raw, second.Raw)
	}
	if text, err := os.ReadFile(filepath.Join(dir, first.Raw, "client.json")); err != nil || string(text) != "{}" {
		t.Errorf("raw file: %q, %v", text, err)
	}
	if want := map[result.Key]bool{first.Key(): true, second.Key(): true}; !cmp.Equal(got.SealedKeys(), want) {
		t.Error(got.SealedKeys())
	}
}

func TestCreateRefuses(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string){
		"a run": func(t *testing.T, dir string) {
			s, err := result.Create(dir, aRun())
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		},
		"a folder with something": func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, "mine"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			prepare(t, dir)
			_, err := result.Create(dir, aRun())
			if !errors.Is(err, result.ErrExists) || !strings.Contains(err.Error(), "--resume "+dir) {
				t.Error(err)
			}
		})
	}
	for name, left := range map[string][]string{"not an empty folder": nil, "not what a killed Create leaves": {"run.json.tmp"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range left {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if fresh, err := result.IsFresh(dir); err != nil || !fresh {
				t.Errorf("fresh %v, %v", fresh, err)
			}
			s, err := result.Create(dir, aRun())
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		})
	}
}

func TestCreateLeavesNothingAfterAnError(t *testing.T) {
	run := aRun()
	run.Plan.Steps[0].Params["rate"] = math.NaN()
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := result.Create(dir, run); err == nil {
		t.Fatal("a NaN in the plan was written")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder is still there:", err)
	}
}

// Who has a guest write the run locks its folder, which may not hold a run
// yet; this machine's own runs heed that, and the other way round.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := result.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := result.Create(dir, aRun()); !errors.Is(err, result.ErrLocked) {
		t.Error("created in a locked folder:", err)
	}
	if _, err := result.Lock(dir); !errors.Is(err, result.ErrLocked) {
		t.Error("locked twice:", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	s, err := result.Create(dir, aRun())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := result.Lock(dir); !errors.Is(err, result.ErrLocked) {
		t.Error("locked a run that is written:", err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir, s := create(t)
	if _, _, err := result.Resume(dir); !errors.Is(err, result.ErrLocked) {
		t.Error("a second writer:", err)
	}
	if _, err := result.Load(dir); err != nil {
		t.Error("a reader beside the writer:", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := result.Resume(dir)
	if err != nil {
		t.Fatal("after the first let go:", err)
	}
	again.Close()
}

func TestSealedSamplesNeverChange(t *testing.T) {
	dir, s := create(t)
	sample := aSample("host", "dts", 1)
	seal(t, s, sample)
	if err := s.Seal(sample); !errors.Is(err, result.ErrSealed) {
		t.Error("sealed twice:", err)
	}
	if _, err := s.Raw(sample).Create("late"); !errors.Is(err, result.ErrSealed) {
		t.Error("raw file after the seal:", err)
	}
	s.Close()
	s, _, err := result.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Seal(sample); !errors.Is(err, result.ErrSealed) {
		t.Error("sealed again after a resume:", err)
	}
}

func TestNoNaNReachesTheDisk(t *testing.T) {
	dir, s := create(t)
	sample := aSample("host", "dts", 1)
	sample.Metrics = map[string]float64{"goodput": math.Inf(1), "loss": math.NaN(), "rate": 5}
	seal(t, s, sample)
	got := load(t, dir).Samples[0]
	want := []result.Reason{
		{Code: result.NotFinite, Text: "goodput came out as no finite number and is left out"},
		{Code: result.NotFinite, Text: "loss came out as no finite number and is left out"},
	}
	if diff := cmp.Diff(want, got.Reasons); diff != "" || got.Verdict != result.Invalid {
		t.Error(got.Verdict, diff)
	}
	if diff := cmp.Diff(map[string]float64{"rate": 5}, got.Metrics); diff != "" {
		t.Error(diff)
	}
}

func TestResumeStartsRawFoldersAnew(t *testing.T) {
	dir, s := create(t)
	killed := aSample("host", "dts", 1)
	write(t, s.Raw(killed), "client.json", "of the attempt that was killed")
	write(t, s.Raw(killed), "server.json", "the same attempt")
	s.Close()
	s, _, err := result.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again := aSample("host", "dts", 1)
	write(t, s.Raw(again), "client.json", "new")
	if _, err := s.Raw(again).Create("client.json"); !errors.Is(err, fs.ErrExist) {
		t.Error("a raw file was written over:", err)
	}
	seal(t, s, again)
	entries, err := os.ReadDir(filepath.Join(dir, again.Raw))
	if err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}

func TestHostileNamesStayInTheirFolder(t *testing.T) {
	dir, s := create(t)
	long := strings.Repeat("x", 5000)
	names := []string{"host", "host@vpc", "..", ".", "", "a/b", "a%2Fb", "../../up", "/etc/passwd", "-rf", "nul\x00", "é <b>", long, long + "y"}
	folders := map[string]string{}
	for _, contender := range names {
		for _, underlay := range []string{"switch", "vpc", "../.."} {
			for _, step := range []string{"dts", "../../../up"} {
				sample := aSample(contender, step, 1)
				sample.Underlay = underlay
				for _, file := range []string{"out", "../../../../up", ".."} {
					write(t, s.Raw(sample), file, "x")
				}
				seal(t, s, sample)
				key := fmt.Sprintf("%q %q %q", contender, underlay, step)
				if other, taken := folders[sample.Raw]; taken {
					t.Errorf("%s and %s share %s", other, key, sample.Raw)
				}
				folders[sample.Raw] = key
				entries, err := os.ReadDir(filepath.Join(dir, sample.Raw))
				if err != nil || len(entries) != 3 {
					t.Errorf("%s: %v, %v", sample.Raw, entries, err)
				}
			}
		}
	}
	if _, ok := folders["raw/host/1/dts"]; !ok {
		t.Error("no raw/host/1/dts")
	}
	if _, ok := folders["raw/host@vpc/1/dts"]; !ok {
		t.Error("no raw/host@vpc/1/dts")
	}
	outside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(outside) != 1 {
		t.Error("beside the run directory:", outside, err)
	}
}

func TestWriteFileIsWholeOrNotAtAll(t *testing.T) {
	dir, s := create(t)
	report := filepath.Join(dir, "report.html")
	if err := s.WriteFile("report.html", text("first")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("template broke")
	err := s.WriteFile("report.html", func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return failed
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(report); string(got) != "first" {
		t.Errorf("after a failure: %q", got)
	}
	if err := result.WriteFile(dir, "report.html", text("second")); err != nil {
		t.Error("beside the run:", err)
	}
	if got, _ := os.ReadFile(report); string(got) != "second" {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"../x", "a/b", "", ".", "..", "run.json", "samples.jsonl", "samples.torn", "raw"} {
		if err := s.WriteFile(name, text("x")); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Error(left)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}
