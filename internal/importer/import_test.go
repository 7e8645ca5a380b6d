package importer

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// load imports the tree and reads the run back.
func load(t testing.TB, format, dir string) (*result.Record, *Summary) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	sum, err := Import(context.Background(), format, dir, out, Options{Tool: result.Tool{Name: "cnibench", Version: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadFile(filepath.Join(out, "sources.jsonl")); err != nil || strings.Count(string(files), "\n") != sum.Files {
		t.Errorf("sources.jsonl: %v, %d lines for %d files", err, strings.Count(string(files), "\n"), sum.Files)
	}
	rec, err := result.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	return rec, sum
}

// trees are result trees to check: a made one, and the published one where
// CNIBENCH_DATA_2024 names its folder (not part of the project).
func trees(t *testing.T) map[string]string {
	made := t.TempDir()
	study{configs: []string{"baremetal", "calico", "flannel"}, rounds: 3, intervals: 3, recorded: 2, snapshots: 12}.write(t, made)
	dirs := map[string]string{"made": made}
	if dir := os.Getenv("CNIBENCH_DATA_2024"); dir != "" {
		dirs["published"] = dir
	}
	return dirs
}

// TestMedians compares the report's medians with ones computed another way:
// from the study's own spreadsheets, which the importer doesn't read.
func TestMedians(t *testing.T) {
	for name, dir := range trees(t) {
		t.Run(name, func(t *testing.T) {
			rec, _ := load(t, "infrabuilder", dir)
			type at struct{ contender, step, metric string }
			medians := map[at]float64{}
			for _, r := range report.Analyse(rec, analysis.Options{}).Results {
				medians[at{r.Contender, r.Step, r.Metric}] = r.Median
			}
			files, err := filepath.Glob(filepath.Join(dir, "*", "results-spreadsheet.csv"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no spreadsheet in %s: %v", dir, err)
			}
			compared := 0
			for _, file := range files {
				contender := contenderID(filepath.Base(filepath.Dir(file)))
				for cell, values := range spreadsheet(t, file) {
					want := at{contender, cell.step, cell.metric}
					got, ok := medians[want]
					if !ok {
						t.Errorf("%v: not in the report", want)
						continue
					}
					if expect := middle(values); math.Abs(got-expect) > 1e-9*math.Abs(expect) {
						t.Errorf("%v: median %v, and %v by the spreadsheet", want, got, expect)
					}
					compared++
				}
			}
			t.Logf("%d medians of %d configurations agree", compared, len(files))
		})
	}
}

type cell struct{ step, metric string }

// spreadsheet reads a study's spreadsheet: a row a run; of each step the
// client's and server's system, user and memory, then its results. A cell
// that is no number has no value.
func spreadsheet(t *testing.T, file string) map[cell][]float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.FieldsPerRecord = '\t', -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values := map[cell][]float64{}
	for _, row := range rows {
		number := func(i int) float64 {
			if i >= len(row) {
				return math.NaN()
			}
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				return math.NaN()
			}
			return v
		}
		add := func(c cell, v float64) {
			if !math.IsNaN(v) {
				values[c] = append(values[c], v)
			}
		}
		at := 0
		for _, step := range strings.Fields("idle dts dtm dus dum sts stm sus sum") {
			memory := (number(at+2) + number(at+5)) / 2
			userSystem := (number(at) + number(at+1) + number(at+3) + number(at+4)) / 2
			at += 6
			if step == "idle" {
				add(cell{step, "memory_used"}, memory)
				continue
			}
			bw := number(at)
			if !math.IsNaN(bw) {
				add(cell{step, "goodput"}, bw)
				add(cell{step, "memory_used"}, memory)
				add(cell{step, "cpu_per_gbit_user_system"}, userSystem/(bw/1e9))
			}
			if step[1] == 't' {
				add(cell{step, "retransmits"}, number(at+1))
				at += 2
			} else {
				add(cell{step, "jitter"}, number(at+1)/1e3)
				add(cell{step, "loss"}, number(at+2)/1e2)
				at += 3
			}
		}
	}
	return values
}

func middle(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func TestStudy(t *testing.T) {
	dir := t.TempDir()
	study{configs: []string{"baremetal", "calico", "flannel"}, rounds: 2, intervals: 3, recorded: 2, snapshots: 12}.write(t, dir)
	rec, sum := load(t, "infrabuilder", dir)
	if len(rec.Samples) != 2*(5+9+9) || sum.Invalid != 0 {
		t.Errorf("%d samples, %d invalid", len(rec.Samples), sum.Invalid)
	}
	if len(rec.Faults) != 1 || !strings.Contains(rec.Faults[0].Text, "88 of 92 recordings") || rec.Faults[0].Code != FaultCode {
		t.Errorf("faults %+v", rec.Faults)
	}
	if rec.Run.Baseline != "host" || rec.Run.Plan.Contenders[0].ID != "host" || rec.Run.Plan.Contenders[2].ID != "flannel-vxlan" {
		t.Errorf("contenders %+v", rec.Run.Plan.Contenders)
	}
	env := rec.Run.Environment
	for key, want := range map[string]string{
		"kernel.release": "5.15.0-92-generic", "pod.mtu.calico": "8950", "pod.mss.host": "8898",
		"check.policy.calico.ingress": "pass", "check.policy.flannel-vxlan.egress": "fail",
	} {
		if env[key] != want {
			t.Errorf("environment %s = %q, want %q", key, env[key], want)
		}
	}
	if s := rec.Run.Plan.Settings; s["mtu"] != "8950" || s["line-rate"] == "" {
		t.Errorf("settings %v", s)
	}
	for _, s := range rec.Samples {
		if s.Contender == "calico" && s.Step == "idle" {
			if s.Raw == "" || math.Abs(s.Metrics["cpu_server_softirq"]-16*0.02) > 1e-6 || math.Abs(s.Metrics["cpu_server"]-16*0.12) > 0.1 {
				t.Errorf("calico idle: raw %q, metrics %v", s.Raw, s.Metrics)
			}
			if _, has := s.Metrics["cpu_client"]; has {
				t.Error("the client's CPU is known only in part, and yet there is a sum")
			}
		}
		if s.Kernel != "5.15.0" {
			t.Errorf("kernel %q", s.Kernel)
		}
	}
}
