package bench

import (
	"testing"
	"time"
)

// A canary notes that it was away, once.
func TestCanary(t *testing.T) {
	c := startCanary(0)
	defer c.end()
	c.look()
	const away = 40 * time.Millisecond
	c.away.Store(int64(away))
	if got, _ := c.look(); got < away {
		t.Errorf("away for %v, want %v", got, away)
	}
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(canaryBeat) {
		if got, _ := c.look(); got != 0 {
			return // it sings on
		}
	}
	t.Error("it has fallen silent")
}
