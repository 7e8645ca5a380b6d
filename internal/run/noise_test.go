package run

import (
	"strings"
	"testing"
)

func TestOutlookSentence(t *testing.T) {
	for _, c := range []struct {
		name string
		noise
		turns bool
		want  string
	}{
		{"a small machine with neighbours", noise{2, 0.08, 0.1}, false, "2 CPUs, steal 8 %, their speed varies by 10 % from slice to slice: latency will hardly be usable; goodput to about 10 %."},
		{"a quiet machine", noise{16, 0, 0.004}, false, "latency should be usable; goodput to about 1 %."},
		{"many CPUs with neighbours", noise{16, 0.03, 0.02}, false, "latency will hardly be usable; goodput to about 2 %."},
		{"a small machine, by turns", noise{2, 0.08, 0.1}, true, "tails and latency will hardly be usable."},
		{"a quiet machine, by turns", noise{16, 0, 0.004}, true, "which all figures should bear."},
	} {
		if got := c.sentence(c.turns); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestSpread(t *testing.T) {
	var even, uneven [noiseSlices]float64
	for k := range noiseSlices {
		even[k], uneven[k] = 100, float64(90+k)
	}
	if got := spreadOf([][noiseSlices]float64{even, even}); got != 0 {
		t.Errorf("equal slices have a spread of %v", got)
	}
	if got := spreadOf([][noiseSlices]float64{uneven}); got != 0.16 {
		t.Errorf("spread %v, want 0.16: from 92 to 108 by 100", got)
	}
}
