package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
)

// Values that cross to another process come out as they went in, to the last field.
func TestHandOver(t *testing.T) {
	at := place{
		At: atLab, Guest: &vm.Facts{Emulated: true},
		Lab: lab.Options{
			Nodes: 2, Underlay: lab.UnderlayAuto, MTU: 1500, PodMTU: 1400, LineRate: 1e9, Offload: lab.OffloadWire, Congestion: "reno",
			CPUs: lab.Placement{Client: []int{0}, Server: []int{1}, Rest: []int{0, 1}}, Custom: &lab.CustomAttach{File: "f", Conf: []byte("{}"), Transport: "vxlan"}, NICDriver: "e1000",
		},
	}
	task := Measurement{
		Dir: "dir with space", End: End{Until: 0.05, Max: time.Second, Least: 7}, Tool: result.Tool{Version: "v"}, Resumption: "cnibench run --resume x",
		Record: result.Run{ID: "r", Arena: "lab", Baseline: "host", Unsupported: []result.Unsupported{{Contender: "a", Reason: "b", OtherKernel: true}}, Plan: result.Plan{
			Seed: 1<<63 + 1, Rounds: 3, Duration: 1.5, Contenders: []result.Entry{{ID: "host", Underlay: "vpc"}}, Gaps: []result.Gap{{Contender: "a", Step: "s"}}, Together: 2, Slice: 0.05, Lead: 0.01,
		}},
	}
	said := Survey{Arena: "lab", MaxUp: 9, Lead: time.Millisecond, Slice: time.Second, Contenders: map[string]Surveyed{
		"a": {Unsupported: &arena.Unsupported{Reason: "r", Remedy: "s", OtherKernel: true, Program: true, Denied: true}},
		"b": {Underlay: "vpc", Missing: map[string]*arena.Unsupported{"service": {Reason: "none"}}},
	}}
	crosses(t, at)
	crosses(t, task)
	crosses(t, said)
}

func crosses[T any](t *testing.T, went T) {
	t.Helper()
	text, err := json.Marshal(went)
	if err != nil {
		t.Fatal(err)
	}
	var came T
	if err := strictJSON(bytes.NewReader(text)).Decode(&came); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(went, came); diff != "" {
		t.Error(diff)
	}
}

// The command refuses what this program would not hand over.
func TestServeRefuses(t *testing.T) {
	for _, wrong := range []string{"", "{", `{"Unknown":1}`, `{"verb":"run"}`, `{"at":"moon"}`} {
		var out bytes.Buffer
		if err := Serve(t.Context(), strings.NewReader(wrong), &out, []AnyVerb{MeasureVerb()}); exit.Code(err) != exit.WrongUsage || out.Len() > 0 {
			t.Errorf("%q: %v, want wrong usage", wrong, err)
		}
	}
	for _, wrong := range []string{"{", `{"verb":"fly"}`, `{"verb":"run","unknown":1}`} {
		w := newWorker(t.Context(), &Inside{}, func() {})
		if err := w.serve(strictJSON(strings.NewReader(wrong)), json.NewEncoder(io.Discard), []AnyVerb{MeasureVerb()}); exit.Code(err) != exit.WrongUsage {
			t.Errorf("task %q: %v, want wrong usage", wrong, err)
		}
	}
}

// A worker answers one task after the other. Answers stand beside errors with the exit code that these had.
func TestWorker(t *testing.T) {
	sum := 0
	count := Verb[int, []int]{Name: "count", Do: func(_ context.Context, _ *Inside, n int) ([]int, error) {
		if n == 0 {
			return nil, exit.With(exit.Gate, errors.New("too few"))
		}
		sum += n
		return []int{sum}, nil
	}}
	ended := 0
	w, err := startWorker(place{At: atGuest}, func(stdin, stdout *os.File) (int, error) {
		orders := strictJSON(stdin)
		var at place
		if err := orders.Decode(&at); err != nil || at.At != atGuest {
			t.Error(at, err)
		}
		inner := newWorker(t.Context(), &Inside{}, func() { ended++ })
		return 0, errors.Join(inner.serve(orders, json.NewEncoder(stdout), []AnyVerb{count}), inner.end())
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int{{3}, {6}} {
		if got, err := count.by(w, 3); err != nil || !cmp.Equal(want, got) {
			t.Errorf("answer %d: %v, %v", i, got, err)
		}
	}
	if got, err := count.Last(w, 0); exit.Code(err) != exit.Gate || err.Error() != "too few" || got != nil || ended != 1 {
		t.Errorf("answer %v, error %v, ended %d times", got, err, ended)
	}
}

// A worker that ends without an answer is lost; why it ended is said once.
func TestWorkerLost(t *testing.T) {
	killed := lostError{errors.New("killed")}
	for name, c := range map[string]struct {
		err  error
		says string
		lost bool
	}{
		"killed":      {killed, "killed", true},
		"unsupported": {&arena.Unsupported{Reason: "no namespaces"}, "no namespaces", false},
		"exit code":   {nil, "the process in the guest ended with exit code 7 and without an answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := startWorker(place{At: atGuest}, func(*os.File, *os.File) (int, error) { return 7, c.err })
			if err != nil {
				t.Fatal(err)
			}
			_, err = MeasureVerb().Last(w, Measurement{})
			if err == nil || err.Error() != c.says || errors.As(err, &lostError{}) != c.lost {
				t.Errorf("error %v", err)
			}
		})
	}
}
