package slicing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// counted is a load that says what it was asked for.
type counted struct {
	slices []time.Duration // lead and length in turn
	err    error
}

type report struct{ Slices int }

func (c *counted) Slice(_ context.Context, lead, length time.Duration, begin, end func()) (any, error) {
	c.slices = append(c.slices, lead, length)
	begin()
	end()
	return report{len(c.slices) / 2}, c.err
}

// Both sides understand each other.
func TestClientAndServe(t *testing.T) {
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	l := &counted{}
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), in, out, l)
		out.Close()
	}()
	c := NewClient(orders, answers)
	if err := c.Ready(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		calls := ""
		got, err := c.Slice(time.Duration(n)*time.Millisecond, time.Second, func() { calls += "b" }, func() { calls += "e" })
		if want := fmt.Sprintf(`{"Slices":%d}`, n); err != nil || calls != "be" || string(got) != want {
			t.Fatalf("slice %d: %s, marks %q, %v", n, got, calls, err)
		}
	}
	orders.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if len(l.slices) != 6 || l.slices[0] != time.Millisecond || l.slices[5] != time.Second {
		t.Errorf("asked for %v", l.slices)
	}
}

func TestServeRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"hello\n":                       "invalid character",
		`{"lead":0,"length":0}`:         "above 0",
		`{"lead":-1,"length":1}`:        "above 0",
		`{"lead":1,"length":1e9}`:       "at most 24h",
		`{"lead":0,"length":1,"x":1}`:   "unknown field",
		`{"lead":0,"length":1`:          "unexpected EOF",
		`{"lead":"1s","length":"10ms"}`: "cannot unmarshal",
	} {
		err := Serve(t.Context(), strings.NewReader(in), io.Discard, &counted{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", in, err, says)
		}
	}
	broken := errors.New("broken")
	if err := Serve(t.Context(), strings.NewReader(`{"lead":0,"length":1}`), io.Discard, &counted{err: broken}); !errors.Is(err, broken) {
		t.Errorf("%v, want the load's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, _ := io.Pipe()
	if err := Serve(ctx, in, io.Discard, &counted{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
}

const aBegin, anEnd, aSlice = `{"event":"begin"}` + "\n", `{"event":"end"}` + "\n", `{"event":"slice","report":{"Slices":1}}` + "\n"

func TestClientRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, calls, says string }{
		{"whole", aBegin + anEnd + aSlice, "be", ""},
		{"died before the slice", "", "", "ended without a result"},
		{"died in the slice", aBegin, "be", "ended without a result"},
		{"died before the report", aBegin + anEnd, "be", "ended without a result"},
		{"twice begun", aBegin + aBegin, "be", "unexpected line"},
		{"ended before begun", anEnd, "", "unexpected line"},
		{"another program", "hello\n", "", "invalid character"},
		{"cut off", aBegin + anEnd + aSlice[:30], "be", "unexpected end of JSON"},
	} {
		calls := ""
		_, err := NewClient(io.Discard, strings.NewReader(tt.in)).Slice(0, 1, func() { calls += "b" }, func() { calls += "e" })
		if calls != tt.calls || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: marks %q and %v, want %q and %q", tt.name, calls, err, tt.calls, tt.says)
		}
	}
}

func FuzzClient(f *testing.F) {
	f.Add([]byte(aBegin + anEnd + aSlice))
	f.Fuzz(func(t *testing.T, in []byte) {
		begins, ends := 0, 0
		_, _ = NewClient(io.Discard, bytes.NewReader(in)).Slice(0, 1, func() { begins++ }, func() { ends++ })
		if begins != ends || begins > 1 {
			t.Fatalf("%d begins, %d ends", begins, ends)
		}
	})
}
