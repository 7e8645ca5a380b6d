package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// frozen writes a small run directory: flannel-vxlan's goodput is multiplied
// by slow; edit changes the run before it is written.
func frozen(t *testing.T, name string, seed uint64, slow float64, edit func(*result.Run)) string {
	t.Helper()
	run := &result.Run{
		ID: name, Tool: result.Tool{Name: "cnibench", Version: "test"}, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Arena: "lab", Baseline: "host", Environment: result.Environment{"kernel.release": "6.18", "cpu.model": "x"},
		Plan: result.Plan{
			Suite: "quick", Rounds: 6, Duration: 1, Settings: map[string]string{"mtu": "1500"},
			Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Path: "pod"}},
		},
	}
	scales := map[string]float64{"host": 1, "macvlan": 0.98, "calico-noencap": 0.8, "flannel-vxlan": 0.6 * slow}
	for _, contender := range []string{"host", "macvlan", "calico-noencap", "flannel-vxlan"} {
		run.Plan.Contenders = append(run.Plan.Contenders, result.Entry{ID: contender, Underlay: "switch"})
		run.Contenders = append(run.Contenders, result.ContenderInfo{ID: contender})
	}
	if edit != nil {
		edit(run)
	}
	dir := filepath.Join(t.TempDir(), name)
	store, err := result.Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, entry := range run.Plan.Contenders {
		for round := 1; round <= run.Plan.Rounds; round++ {
			goodput := 30e9 * scales[entry.ID] * math.Exp(0.02*rng.NormFloat64())
			err := store.Seal(&result.Sample{
				Contender: entry.ID, Underlay: entry.Underlay, Kernel: "6.18", Round: round, Step: "dts", Workload: "tcp_stream", Path: "pod",
				Verdict: result.Valid, Metrics: map[string]float64{"goodput": goodput, "cpu_per_gbit": 1e9 / goodput},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// replaceLine puts another text in the place of a file's line, from 1.
func replaceLine(t *testing.T, file string, line int, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	lines[line-1] = text
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs the program and gives its exit code.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, messages bytes.Buffer
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdout, c.Stderr = &out, &messages
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), messages.String()
}

// told checks an exit code and what was said.
type told struct {
	args           string // with the names of run directories
	code           int
	stdout, stderr string // parts
}

func (c told) check(t *testing.T, dirs map[string]string) {
	t.Helper()
	var args []string
	for _, word := range strings.Fields(c.args) {
		if dir, ok := dirs[word]; ok {
			word = dir
		}
		args = append(args, word)
	}
	code, stdout, stderr := command(t, args...)
	if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
		t.Errorf("%s: code %d, want %d with %q and %q\n%s\n%s", c.args, code, c.code, c.stdout, c.stderr, stdout, stderr)
	}
}

func TestCompareCommand(t *testing.T) {
	dirs := map[string]string{
		"OLD": frozen(t, "old", 1, 1, nil), "AGAIN": frozen(t, "again", 2, 1, nil), "SLOW": frozen(t, "slow", 3, 0.7, nil),
		"FEW": frozen(t, "few", 4, 0.1, func(r *result.Run) { r.Plan.Rounds = 3 }),
		"JUMBO": frozen(t, "jumbo", 5, 1, func(r *result.Run) {
			r.Plan.Settings["mtu"] = "9000"
			r.Environment["kernel.release"] = "6.19"
		}),
		"ONE": frozen(t, "one", 6, 1, func(r *result.Run) {
			r.Plan.Contenders, r.Contenders = r.Plan.Contenders[3:], r.Contenders[3:]
		}),
		"OTHER": frozen(t, "other", 7, 1, func(r *result.Run) {
			r.Plan.Contenders, r.Contenders = r.Plan.Contenders[:1], r.Contenders[:1]
		}),
	}
	dirs["KERNEL"] = frozen(t, "kernel", 12, 1, func(r *result.Run) { r.Environment["kernel.release"] = "6.19" })
	dirs["VERSION"] = frozen(t, "version", 11, 1, func(r *result.Run) {
		r.Tool.Version = "next"
		r.Contenders[1].SHA256 = strings.Repeat("a", 64)
	})
	dirs["UNPAIRED"] = frozen(t, "unpaired", 9, 1, func(r *result.Run) { r.Plan.Unpaired = true })
	dirs["TORN"] = frozen(t, "torn", 10, 1, nil)
	replaceLine(t, filepath.Join(dirs["TORN"], "samples.jsonl"), 7, "{")
	none := filepath.Join(t.TempDir(), "none")
	if err := os.Mkdir(none, 0o755); err != nil {
		t.Fatal(err)
	}
	newer := frozen(t, "newer", 8, 1, nil)
	file := filepath.Join(newer, "run.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(result.RunSchema), []byte("cnibench/run/99"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	dirs["NONE"], dirs["NEWER"] = none, newer
	for _, c := range []told{
		{"compare OLD OLD --fail-on 0%", 0, "gate passed", ""},
		{"compare OLD AGAIN --fail-on 5%", 0, "gate passed: none of 8 figures", ""},
		{"compare OLD AGAIN -- SLOW SLOW", 0, "2 old and 2 new runs", ""},
		{"compare OLD OLD AGAIN", 2, "", "OLD... -- NEW..."},
		{"compare -- OLD AGAIN", 2, "", "OLD... -- NEW..."},
		{"compare OLD SLOW", 0, "▼ worse ", ""},
		{"compare OLD SLOW --fail-on 5%", 4, "✗ FAILS ", "gate failed: 2 of 8 figures worse by more than 5 %"},
		{"compare OLD SLOW --fail-on 5% --vs-baseline", 4, "✗ FAILS ", "gate failed"},
		{"compare OLD SLOW --fail-on 50%", 0, "gate passed", ""},
		{"compare OLD SLOW --fail-on 5% --contenders macvlan", 0, "none of 2 figures", ""},
		{"compare OLD SLOW --fail-on 5% --format junit", 4, `<failure message="FAILS: `, "gate failed"},
		{"compare OLD SLOW --fail-on 5% --format md", 4, "### ❌ cnibench", "gate failed"},
		{"compare OLD SLOW --format benchstat", 0, "run: new:slow", ""},
		{"compare OLD FEW --fail-on 5%", 4, "▽ worse? ", "too few rounds for any of 8 figures to fail, however much worse; 5 rounds in each run would do"},
		{"compare OLD FEW", 0, "8 of 8 figures can't be told", ""},
		{"compare OLD TORN --fail-on 5%", 4, "✗ the new run: samples.jsonl line 7", "the new run is broken in"},
		{"compare TORN OLD --fail-on 5%", 0, "the old run: samples.jsonl line 7", ""},
		{"compare OLD UNPAIRED --vs-baseline", 2, "", "leave the flag out"},
		{"compare OLD UNPAIRED --fail-on 5%", 0, "gate passed", ""},
		{"compare OLD JUMBO", 2, "", "setting.mtu: 1500 → 9000"},
		{"compare OLD JUMBO", 2, "", "environment.kernel.release: 6.18 → 6.19"},
		{"compare OLD AGAIN -- AGAIN KERNEL", 2, "", "environment.kernel.release: 6.18 → 6.19"},
		{"compare OLD KERNEL -- AGAIN AGAIN", 2, "", "environment.kernel.release: 6.18 → 6.19"},
		{"compare OLD JUMBO --force", 0, "setting.mtu: 1500 → 9000", ""},
		{"compare OLD VERSION", 2, "", "tool.version: test → next\ncompare runs made alike, or add --mixed-versions"},
		{"compare OLD VERSION --mixed-versions", 0, "tool.version: test → next", ""},
		{"compare JUMBO VERSION --mixed-versions", 2, "", "or add --force"},
		{"compare OLD ONE", 0, "macvlan at dts: not in the new run's plan", ""},
		{"compare ONE ONE --vs-baseline", 2, "", "no valid sample of its baseline host"},
		{"compare OTHER ONE", 1, "", "no figure in common"},
		{"compare OLD NONE", 1, "", "run"},
		{"compare OLD NEWER", 1, "", "cnibench/run/99"},
		{"compare OLD", 2, "", "cnibench compare OLD NEW"},
		{"compare OLD AGAIN --metric godput", 2, "", `did you mean "goodput"`},
		{"compare OLD AGAIN --metric jitter", 2, "", "none of the runs has it"},
		{"compare OLD AGAIN --step dtx", 2, "", "they have dts"},
		{"compare OLD AGAIN --format junt", 2, "", `did you mean "junit"`},
		{"compare OLD AGAIN --fail-on 5", 2, "", "e.g. 5%"},
		{"compare OLD AGAIN --fail-on NaN%", 2, "", "e.g. 5%"},
		{"compare OLD AGAIN --confidence 100%", 2, "", "e.g. 95%"},
	} {
		c.check(t, dirs)
	}
	out := filepath.Join(t.TempDir(), "gate.json")
	if code, stdout, _ := command(t, "compare", dirs["OLD"], dirs["SLOW"], "--fail-on", "5%", "--format", "json", "-o", out); code != 4 || stdout != "" {
		t.Errorf("code %d, standard output %q", code, stdout)
	}
	var compared compare.Comparison
	if text, err := os.ReadFile(out); err != nil || json.Unmarshal(text, &compared) != nil || *compared.Passed {
		t.Errorf("%s: %v", out, err)
	}
}

func TestRecommendCommand(t *testing.T) {
	dirs := map[string]string{
		"RUN": frozen(t, "run", 1, 1, nil),
		"CHECKED": frozen(t, "checked", 1, 1, func(r *result.Run) {
			r.Environment["check.policy.calico-noencap.ingress"] = "fail: came through"
		}),
		"UNPAIRED": frozen(t, "unpaired", 1, 1, func(r *result.Run) { r.Plan.Unpaired = true }),
		"ALONE":    frozen(t, "alone", 1, 1, func(r *result.Run) { r.Plan.Contenders = r.Plan.Contenders[1:] }),
	}
	for _, c := range []told{
		{"recommend RUN", 0, "calico-noencap, and firmly", ""},
		{"recommend RUN --need policy,arm64", 0, "calico-noencap, the only measured product", ""},
		{"recommend RUN --need policy", 0, "policy: not so, by the catalogue: macvlan, flannel-vxlan, flannel-host-gw", ""},
		{"recommend RUN --need encryption", 0, "cilium-wg", ""},
		{"recommend CHECKED --need policy", 0, "policy: a check found ingress: fail: calico-noencap", ""},
		{"recommend RUN --weight capacity=3,cpu=0", 0, "weighted capacity=3.", ""},
		{"recommend RUN --weight latency=2,memory=1", 4, "", "latency and memory do not count, though they were given weight"},
		{"recommend RUN --weight latency=2,capacity=1", 0, "latency does not count, though", "latency does not count, though"},
		{"recommend UNPAIRED", 0, "over all pairs of rounds", ""},
		{"recommend RUN --scenario encryption", 0, "needed: encryption", ""},
		{"recommend RUN --scenario encryption --need arm64", 0, "needed: arm64, encryption", ""},
		{"recommend RUN --scenario small-nodes", 4, "", "no figures of memory to judge small-nodes by; measure them: cnibench run --suite throughput --arena kube"},
		{"recommend RUN --scenario tail-latensy", 2, "", `did you mean "tail-latency"`},
		{"list scenarios", 0, "memory=2", ""},
		{"list scenarios --json", 0, `"name": "small-nodes"`, ""},
		{"recommend RUN --format md", 0, "| 1 | calico-noencap |", ""},
		{"recommend RUN --format json", 0, `"schema": "cnibench/recommend/1"`, ""},
		{"recommend ALONE", 4, "", "beside the baseline host"},
		{"recommend RUN --need polcy", 2, "", `did you mean "policy"`},
		{"recommend RUN --weight latecy=2", 2, "", `did you mean "latency"`},
		{"recommend RUN --weight latency", 2, "", "want latency=NUMBER"},
		{"recommend RUN --weight latency=-1", 2, "", "want latency=NUMBER"},
		{"recommend RUN --format html", 2, "", "unknown format"},
		{"__complete recommend RUN --need policy,key", 0, "policy,key-rotation", ""},
	} {
		c.check(t, dirs)
	}
}

// What measures a scenario's figures is a command line of `cnibench run`.
func TestScenariosRun(t *testing.T) {
	all, err := recommend.Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := run.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		c := newRunCmd()
		if err := c.ParseFlags(strings.Fields(s.Run)); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if _, err := cat.Suite(c.Flag("suite").Value.String()); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// Every need but those that only a run can tell is in the catalogue.
func TestCatalogueSaysEveryNeed(t *testing.T) {
	cat, err := run.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{"low-memory": true, "jumbo-auto": true}
	for _, c := range report.Capabilities(cat.Contenders) {
		said[c.Name] = true
	}
	for _, need := range recommend.NeedNames() {
		if !said[need] {
			t.Errorf("need %s: no contender says it", need)
		}
	}
}
