package agent

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// A pod ends by itself when nobody has run anything in it for long, and not
// before.
func TestIdleAbandoned(t *testing.T) {
	// Idle kills every child of its process: it has one of its own.
	if looks, err := strconv.Atoi(os.Getenv("CNIBENCH_TEST_IDLE")); err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := 0
		idle(ctx, time.Millisecond, 20*time.Millisecond, func() bool { seen++; return seen <= looks })
		if ctx.Err() != nil {
			t.Fatal("an abandoned pod stays")
		}
		if seen <= looks {
			t.Fatalf("it ended at look %d, and commands were seen until look %d", seen, looks)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleAbandoned$")
	cmd.Env = append(os.Environ(), "CNIBENCH_TEST_IDLE=100")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
