package cli

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
	"github.com/cnibench/cnibench/internal/tune"
)

// A setting that was made harmful on purpose is named as such, and nothing of
// it is left.
func TestTuneBenchFindsHarm(t *testing.T) {
	needs.Slow(t, "measures what a setting does")
	before := machine(t)
	dir := filepath.Join(t.TempDir(), "run")
	var stdout, stderr bytes.Buffer
	// Four rounds more than an interval needs: a busy machine spoils some.
	cmd := exec.CommandContext(t.Context(), program, "tune", "bench", "--contender", "host", "--step", "dts", "--json", "--out", dir,
		"--sysctl", "net.ipv4.tcp_rmem=4096,4096,4096", "--rounds", "10", "--duration", "300ms", "--warmup", "100ms")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), stdout.String())
	}
	var got struct {
		Schema  string            `json:"schema"`
		Effects []tune.Difference `json:"effects"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	hurt, tooFew := false, false
	for _, e := range got.Effects {
		if e.Variant != "host+net.ipv4.tcp_rmem" || e.Step != "dts" {
			t.Errorf("%+v", e)
		}
		if e.Metric == "goodput" && e.Ratio < 0.8 {
			hurt, tooFew = e.Verdict == tune.Hurt, e.Verdict == tune.TooFew
		}
	}
	if tooFew { // said instead of a verdict that the valid rounds do not hold
		t.Log("a busy machine spoiled so many rounds that the harm is seen and not proven")
	} else if !hurt {
		t.Errorf("the harm was not found: %s\n%s", stdout.String(), stderr.String())
	}
	if got.Schema != "cnibench/tune-bench/1" {
		t.Errorf("schema %q", got.Schema)
	}
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

// The lab in a guest, whose nodes have the guest's network devices: RFS is set on these and
// in the guest's first network namespace.
func TestTuneBenchGuest(t *testing.T) {
	needs.Guest(t)
	dir := filepath.Join(t.TempDir(), "run")
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "tune", "bench", "--arena", "microvm", "--nic", "e1000", "--contender", "host", "--step", "dts", "--json", "--out", dir,
		"rfs", "--rounds", "2", "--duration", "300ms", "--warmup", "100ms")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), stdout.String())
	}
	var got struct {
		Effects []tune.Difference `json:"effects"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Effects) == 0 || rec.Run.Arena != "microvm" {
		t.Errorf("arena %s: %s\n%s", rec.Run.Arena, stdout.String(), stderr.String())
	}
	for _, e := range got.Effects {
		if e.Verdict == tune.Nothing {
			t.Errorf("%+v", e)
		}
	}
}
