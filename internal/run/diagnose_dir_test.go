package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/diagnose"
)

// recordedMetrics is what a recorder wrote of a node whose table of connections was full.
const recordedMetrics = `# TYPE cnibench_recording info
cnibench_recording_info{endpoint="node1",node="node1"} 1 1
cnibench_recording_info{endpoint="node1",node="node1"} 1 3
# TYPE node_nf_conntrack_entries gauge
node_nf_conntrack_entries{endpoint="node1",node="node1"} 1024 1
node_nf_conntrack_entries{endpoint="node1",node="node1"} 1024 3
# TYPE node_nf_conntrack_entries_limit gauge
node_nf_conntrack_entries_limit{endpoint="node1",node="node1"} 1024 1
node_nf_conntrack_entries_limit{endpoint="node1",node="node1"} 1024 3
# TYPE node_nf_conntrack_stat_drop counter
node_nf_conntrack_stat_drop_total{endpoint="node1",node="node1"} 7 1
node_nf_conntrack_stat_drop_total{endpoint="node1",node="node1"} 507 3
# EOF
`

// recordedRun writes a run directory with a contender over VXLAN beside host.
func recordedRun(t *testing.T, contenders string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("run.json", `{"schema":"cnibench/run/1","id":"r","tool":{"name":"cnibench"},"started":"2026-11-27T10:00:00Z","arena":"lab","baseline":"host",
"plan":{"suite":"quick","rounds":1,"seed":1,"duration":1,"warmup":0,"contenders":[{"id":"host","underlay":"switch"},{"id":"x","underlay":"switch"}],
"steps":[{"id":"dts","summary":"s","workload":"tcp_bulk","path":"pod"}],"settings":{}},"contenders":[{"id":"host"},`+contenders+`],"unsupported":[],"environment":{}}`)
	sample := func(contender, goodput string) string {
		return `{"schema":"cnibench/sample/1","contender":"` + contender + `","kernel":"6.18","underlay":"switch","round":1,"order":1,"step":"dts","workload":"tcp_bulk","path":"pod",` +
			`"started":"2026-11-27T10:00:00Z","elapsed":2,"verdict":"valid","metrics":{"goodput":` + goodput + `},"raw":"raw/` + contender + `/1/dts"}` + "\n"
	}
	write("samples.jsonl", sample("host", "10e9")+sample("x", "5e9"))
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	write("raw/x/1/dts/metrics.om.zst", string(z.EncodeAll([]byte(recordedMetrics), nil)))
	return dir
}

// A run directory gives a verdict from its counters alone.
func TestDiagnoseDir(t *testing.T) {
	dir := recordedRun(t, `{"id":"x","datapath":"bridge × vxlan"}`)
	var got *diagnose.Verdict
	err := DiagnoseDir(dir, "", func(_ *diagnose.Case, v *diagnose.Verdict) error { got = v; return nil })
	if code := exit.Code(err); code != exit.Gate {
		t.Fatalf("exit code %v: %v", code, err)
	}
	if x := got.Causes[0]; x.ID != "conntrack-full" || x.State != diagnose.Supported || x.Node != "node1" {
		t.Errorf("%+v", x)
	}
	if !strings.Contains(got.Summary, "usual for VXLAN") || !strings.Contains(got.Summary, "0.5×") {
		t.Error(got.Summary)
	}
}

// A run of several contenders must be told which.
func TestDiagnoseDirChoice(t *testing.T) {
	dir := recordedRun(t, `{"id":"x","datapath":"bridge × vxlan"},{"id":"y","datapath":"routes"}`)
	none := func(*diagnose.Case, *diagnose.Verdict) error { return nil }
	if err := DiagnoseDir(dir, "", none); err == nil || exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), "--contender: x, y") {
		t.Error(err)
	}
	if err := DiagnoseDir(dir, "y", none); err == nil || !strings.Contains(err.Error(), "no valid sample of y") {
		t.Error(err)
	}
	if err := DiagnoseDir(filepath.Join(dir, "samples.jsonl"), "", none); exit.Code(err) != exit.WrongUsage {
		t.Error(err)
	}
}
