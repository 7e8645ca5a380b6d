package bench

import (
	"testing"
	"time"
)

// A canary reports an absence once.
func TestCanary(t *testing.T) {
	c := startCanary(0)
	defer c.stop()
	c.takeAbsence()
	const absence = 40 * time.Millisecond
	c.absent.Store(int64(absence))
	if got, _ := c.takeAbsence(); got < absence {
		t.Errorf("away for %v, want %v", got, absence)
	}
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(canaryBeat) {
		if got, _ := c.takeAbsence(); got != 0 {
			return // the canary still runs
		}
	}
	t.Error("it has fallen silent")
}
