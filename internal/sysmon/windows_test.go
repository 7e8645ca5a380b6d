package sysmon

import (
	"errors"
	"math"
	"testing"
	"time"
)

// What happened between the windows counts neither in a counter's growth nor in
// the time that it is divided by, nor in a gauge's mean.
func TestWithin(t *testing.T) {
	at := func(seconds float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)) }
	r := &Recording{
		Times: []time.Time{at(0), at(1), at(2), at(3), at(4), at(6)},
		Families: []Family{
			{Name: "jobs", Type: "counter", Series: []Series{{Values: []Value{0, 10, 1000, 1020, 5000, 5030}}}},
			{Name: "late", Type: "counter", Series: []Series{{Values: []Value{Absent, Absent, 7, 8, 9, 11}}}},
			{Name: "used", Type: "gauge", Series: []Series{{Values: []Value{1, 1, 5, 5, 9, 9}}}},
		},
	}
	w, err := r.Within([]Window{{at(0), at(1)}, {at(2), at(3)}, {at(4), at(6)}})
	if err != nil {
		t.Fatal(err)
	}
	first, last := w.Times[0], w.Times[len(w.Times)-1]
	check := func(what string, got float64, err error, want float64) {
		t.Helper()
		if err != nil || math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	got, err := w.Delta("jobs", nil, first, last)
	check("growth", got, err, 10+20+30)
	got, err = w.Rate("jobs", nil, first, last)
	check("rate", got, err, 60.0/4)
	got, err = w.Delta("late", nil, first, last)
	check("growth of a late one", got, err, 1+2)
	got, err = w.Mean("used", nil, first, last)
	check("mean", got, err, (1+5+2*9)/4.0)

	for _, windows := range [][]Window{nil, {{at(2), at(2)}}} {
		if _, err := r.Within(windows); !errors.Is(err, ErrNoData) {
			t.Errorf("windows %v: error %v", windows, err)
		}
	}
}
