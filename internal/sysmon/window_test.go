package sysmon

import (
	"errors"
	"math"
	"testing"
	"time"
)

// at is t seconds after the beginning of the tests' recordings.
func at(t float64) time.Time {
	return time.Unix(1_700_000_000, 0).UTC().Add(time.Duration(t * float64(time.Second)))
}

func TestWindow(t *testing.T) {
	device := func(name string) map[string]string { return map[string]string{"device": name} }
	rec := &Recording{
		Times: []time.Time{at(0), at(1), at(1.5), at(2), at(3)},
		Families: []Family{
			{Name: "bytes", Type: "counter", Series: []Series{
				{device("eth0"), []Value{100, 200, 250, 300, 1000}},
				{device("late"), []Value{Absent, Absent, 7, 9, 9}},
				{device("reset"), []Value{50, 60, 5, 15, 15}},
				{device("gone"), []Value{Absent, Absent, Absent, Absent, Absent}},
			}},
			{Name: "memory", Type: "gauge", Series: []Series{
				{device("a"), []Value{10, 10, 20, 20, 40}},
				{device("gap"), []Value{1, Absent, 3, 5, Absent}},
			}},
			{Name: "damaged", Type: "gauge", Series: []Series{{nil, []Value{1}}}},
		},
	}
	for _, tt := range []struct {
		name       string
		ask        func(string, map[string]string, time.Time, time.Time) (float64, error)
		family     string
		match      map[string]string
		begin, end float64
		want       float64 // NaN: no data
	}{
		{"exact marks", rec.Delta, "bytes", device("eth0"), 1, 2, 100},
		{"nearest snapshots", rec.Delta, "bytes", device("eth0"), 0.6, 1.9, 100},
		{"the earlier of two as near", rec.Delta, "bytes", device("eth0"), 0.5, 2, 100},
		{"a little outside", rec.Delta, "bytes", device("eth0"), -0.5, 3.5, 900},
		{"appeared in the window", rec.Delta, "bytes", device("late"), 0, 3, 2},
		{"went back", rec.Delta, "bytes", device("reset"), 0, 3, 20},
		{"sum of all", rec.Delta, "bytes", nil, 0, 3, 922},
		{"rate over the time between snapshots", rec.Rate, "bytes", device("eth0"), 0.6, 1.9, 100},
		{"rate of what went back", rec.Rate, "bytes", device("reset"), 0, 3, 20 / 2.5},
		{"rate of what only went back", rec.Rate, "bytes", device("reset"), 1, 1.5, 0},
		{"rate", rec.Rate, "bytes", device("eth0"), 1, 1.5, 100},
		{"mean", rec.Mean, "memory", device("a"), 0, 3, (10*1 + 15*0.5 + 20*0.5 + 30*1) / 3},
		{"mean over a gap", rec.Mean, "memory", device("gap"), 0, 3, 4},
		{"never there", rec.Delta, "bytes", device("gone"), 0, 3, math.NaN()},
		{"absent but once", rec.Delta, "bytes", device("late"), 1, 1.5, math.NaN()},
		{"gap only", rec.Mean, "memory", device("gap"), 0, 1.5, math.NaN()},
		{"no family", rec.Delta, "packets", nil, 0, 3, math.NaN()},
		{"no series", rec.Delta, "bytes", device("eth1"), 0, 3, math.NaN()},
		{"before the recording", rec.Delta, "bytes", nil, -5, 2, math.NaN()},
		{"after the recording", rec.Delta, "bytes", nil, 1, 10, math.NaN()},
		{"within one snapshot", rec.Rate, "bytes", nil, 1.9, 2.1, math.NaN()},
		{"backwards", rec.Mean, "memory", nil, 3, 0, math.NaN()},
		{"damaged", rec.Mean, "damaged", nil, 0, 3, math.NaN()},
		{"empty recording", (&Recording{Families: rec.Families}).Delta, "bytes", nil, 0, 3, math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.ask(tt.family, tt.match, at(tt.begin), at(tt.end))
			if math.IsNaN(tt.want) {
				if !errors.Is(err, ErrNoData) {
					t.Errorf("%v, %v; want ErrNoData", got, err)
				}
				return
			}
			if err != nil || math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
}
