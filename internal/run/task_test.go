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

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
)

// A process gets the request and the task that were handed over, to the last field.
func TestHandOver(t *testing.T) {
	asked := Request{
		Suite: "quick", Rounds: 3, Duration: time.Second, Seed: 1<<63 + 1, Out: "dir with space", Services: []int{1, 100}, CNIText: "{}",
		Cluster: Cluster{Facts: map[string]string{"a": "b"}}, Given: map[string]bool{"rounds": true}, Tool: result.Tool{Version: "v"},
	}
	asked.Guest.Memory = "1G"
	text, err := json.Marshal(&handOver{At: atLab, Verb: "run", Request: &asked, Task: json.RawMessage(`{"Wanted":["a"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got handOver
	if err := strictJSON(bytes.NewReader(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, *got.Request, cmp.AllowUnexported(Request{})); diff != "" {
		t.Error(diff)
	}
	if task, err := MeasureVerb().decode(got.Task); err != nil || len(task.Wanted) != 1 {
		t.Errorf("task %+v, %v", task, err)
	}
}

// The command refuses what this program would not hand over.
func TestTakeOverRefuses(t *testing.T) {
	for _, wrong := range []string{"", "{", `{"Unknown":1}`, `{"verb":"run","at":"lab"}`, `{"verb":"fly","request":{}}`, `{"verb":"run","request":{},"at":"moon"}`} {
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
