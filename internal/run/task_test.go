package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
)

// A process gets the lab and the task that were handed over, to the last field.
func TestHandOver(t *testing.T) {
	asked := handOver{
		At: atLab, Verb: "run", Guest: &vm.Facts{Emulated: true},
		Lab: lab.Options{
			Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, PodMTU: 1400, LineRate: 1e9, Offload: lab.OffloadWire, Congestion: "reno",
			CPUs: lab.Placement{Client: []int{0}, Server: []int{1}, Rest: []int{0, 1}}, Custom: &lab.CustomAttach{File: "f", Conf: []byte("{}"), Transport: "vxlan"}, NICDriver: "e1000",
		},
	}
	task := Measurement{
		Dir: "dir with space", Plan: result.Plan{Seed: 1<<63 + 1, Rounds: 3, Duration: 1.5}, End: End{Until: 0.05, Max: time.Second, Least: 7},
		Wanted: []string{"a"}, Tool: result.Tool{Version: "v"}, Resumption: "cnibench run --resume x",
	}
	var err error
	if asked.Task, err = json.Marshal(&task); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&asked)
	if err != nil {
		t.Fatal(err)
	}
	var got handOver
	if err := strictJSON(bytes.NewReader(text), &got); err != nil {
		t.Fatal(err)
	}
	gotTask, err := MeasureVerb().decode(got.Task)
	if diff := cmp.Diff(task, gotTask); err != nil || diff != "" {
		t.Error(err, diff)
	}
	asked.Task, got.Task = nil, nil
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Error(diff)
	}
}

// The command refuses what this program would not hand over.
func TestTakeOverRefuses(t *testing.T) {
	for _, wrong := range []string{"", "{", `{"Unknown":1}`, `{"verb":"run"}`, `{"verb":"fly","at":"lab"}`, `{"verb":"run","at":"moon"}`} {
		var out bytes.Buffer
		if err := TakeOver(t.Context(), strings.NewReader(wrong), &out, []AnyVerb{MeasureVerb()}); exit.Code(err) != exit.WrongUsage || out.Len() > 0 {
			t.Errorf("%q: %v, want wrong usage", wrong, err)
		}
	}
}

// What comes back is the answer, beside an error with the exit code that it had.
func TestAnswer(t *testing.T) {
	v := Verb[int, []int]{Name: "count", Do: func(_ context.Context, _ *Inside, n int) ([]int, error) {
		return []int{n}, exit.With(exit.Gate, errors.New("too few"))
	}}
	value, err := v.carryOut(t.Context(), nil, json.RawMessage("3"))
	text, jsonErr := json.Marshal(newAnswer(value, err))
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	a, err := readAnswer(bytes.NewBuffer(text), 0, "lab")
	if err != nil {
		t.Fatal(err)
	}
	if string(a.Answer) != "[3]" || exit.Code(a.err()) != exit.Gate || a.err().Error() != "too few" {
		t.Errorf("answer %s, error %v", a.Answer, a.err())
	}
	if _, err := readAnswer(bytes.NewBuffer(nil), 2, "lab"); !errors.As(err, new(lostError)) {
		t.Errorf("no answer: %v", err)
	}
}
