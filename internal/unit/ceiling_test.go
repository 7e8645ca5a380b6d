package unit

import (
	"math"
	"testing"
)

func TestCeiling(t *testing.T) {
	tests := []struct {
		name          string
		line          BitRate
		mtu, overhead int
		udp           bool
		want          BitRate
	}{
		{"TCP", 10e9, 1500, 0, false, 10e9 * 1448 / 1514.},
		{"UDP", 10e9, 1500, 0, true, 10e9 * 1472 / 1514.},
		{"VXLAN", 10e9, 1500, 50, false, 10e9 * 1398 / 1514.},
		{"no line rate", 0, 1500, 0, false, 0},
		{"no MTU", 10e9, 0, 0, false, 0},
	}
	for _, tt := range tests {
		if got := Ceiling(tt.line, tt.mtu, tt.overhead, tt.udp); math.Abs(float64(got-tt.want)) > 1 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
