//go:build linux

package bench

import (
	"maps"
	"os"
	"testing"
	"time"
)

// work uses so much CPU time of this process.
func work(t *testing.T, d time.Duration) {
	t.Helper()
	for from, _ := cpuTime(os.Getpid()); ; {
		if used, ok := cpuTime(os.Getpid()); !ok {
			t.Fatal("this process has no CPU time")
		} else if used-from >= d {
			return
		}
	}
}

// What a process uses between begin and end counts, in nanoseconds, and what it uses
// in its own slices does not.
func TestIdleCountsOutsideOfSlices(t *testing.T) {
	const much, little = 50 * time.Millisecond, 3 * time.Millisecond
	u := othersCPU{pids: []int{os.Getpid(), 1 << 30}} // the second one is nobody
	if u.rate() != nil {
		t.Error("a rate before anything was counted")
	}
	u.begin()
	work(t, little)
	u.end()
	first := u.used
	if first < little {
		t.Errorf("%v counted, %v used", first, little)
	}
	work(t, much)
	u.begin()
	if u.end(); u.used-first >= much {
		t.Errorf("%v counted of a slice's %v", u.used-first, much)
	}
	if r := u.rate(); r == nil || *r != u.used.Seconds()/u.wall.Seconds() {
		t.Errorf("a rate of %v from %v in %v", r, u.used, u.wall)
	}
}

func TestAddedSpaces(t *testing.T) {
	got := listAddedNamespaces(map[int]string{1: "lab", 2: "a"}, map[int]string{1: "lab", 2: "a", 3: "lab", 4: "b", 5: "b", 6: "c"})
	if !maps.Equal(got, map[string]bool{"b": true, "c": true}) {
		t.Errorf("%v, want b and c", got)
	}
}
