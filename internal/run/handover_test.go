package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
)

// A process gets the request that the leading one hands over, not the defaults of
// its own flags.
func TestHandOver(t *testing.T) {
	asked := Request{
		Suite: "quick", Rounds: 3, Duration: time.Second, Seed: 1<<63 + 1, Out: "dir with space", Services: []int{1, 100}, GuestFollows: true,
		Cluster: Cluster{Facts: map[string]string{"a": "b"}}, Given: map[string]bool{"rounds": true},
	}
	asked.Guest.Memory = "1G"
	args, err := asked.handOver()
	if err != nil {
		t.Fatal(err)
	}
	text, found := strings.CutPrefix(args[len(args)-1], "--"+RequestFlag+"=")
	if len(args) != 2 || args[0] != "run" || !found {
		t.Fatalf("arguments %q", args)
	}
	got := Request{Suite: "latency", Nodes: "2", Tool: result.Tool{Version: "v"}}
	if err := got.Accept(text); err != nil {
		t.Fatal(err)
	}
	asked.Tool = got.Tool
	if diff := cmp.Diff(asked, got, cmpopts.IgnoreUnexported(Request{})); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"", "{", `{"Unknown":1}`} {
		if err := got.Accept(wrong); exit.Code(err) != exit.WrongUsage {
			t.Errorf("%q: %v, want wrong usage", wrong, err)
		}
	}
}

// Where a guest follows and this kernel runs none of the contenders that were asked
// for, the process in the lab writes a run without contenders and says nothing; the
// leading process takes that away for the guest's run.
func TestNothingBeforeTheGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	catalogue, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{request: &Request{Baseline: "host", Out: dir, GuestFollows: true}, Catalogue: catalogue, Place: &LabPlace{}, Wanted: []string{"cilium-netkit"}, Plan: runOf("lab").Plan}
	_, _, _, err = j.openStore(t.Context(), poor{}, nil)
	if exit.Code(err) != exit.Unsupported || err.Error() != "" {
		t.Errorf("%q: exit code %d, want %d without words", err, exit.Code(err), exit.Unsupported)
	}
	if !measuresNothing(dir) {
		t.Error("no run without contenders in the run directory")
	}
	resumed := &Request{Arena: Auto, Resume: dir}
	if _, err := resumed.Prepare(); exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), "begin a new run") {
		t.Errorf("resumed: %v, want wrong usage", err)
	}
	if err := discard(dir, false); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := discard(dir, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
}
