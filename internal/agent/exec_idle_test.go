package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// A pod ends by itself when its run gives no sign any more, and not before: neither
// at the first look nor while signs come.
func TestIdleAbandoned(t *testing.T) {
	// Idle kills every child of its process: it has one of its own.
	if looks, err := strconv.Atoi(os.Getenv("CNIBENCH_TEST_IDLE")); err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := 0
		err := idle(ctx, patience{time.Millisecond, time.Hour, 20 * time.Millisecond}, func() string {
			seen++
			return strconv.Itoa(min(seen, looks))
		})
		if !errors.Is(err, ErrAbandoned) {
			t.Fatalf("an abandoned pod stays: %v", err)
		}
		if seen <= looks {
			t.Fatalf("it ended at look %d, and there were signs until look %d", seen, looks)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleAbandoned$")
	cmd.Env = append(os.Environ(), "CNIBENCH_TEST_IDLE=100")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each byte makes another sign, and their end ends it.
func TestRenew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sign")
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Renew(r, file) }()
	last := ""
	for range 3 {
		if _, err := w.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		now := last
		for now == last || now == "" {
			time.Sleep(time.Millisecond)
			text, _ := os.ReadFile(file)
			now = string(text)
		}
		last = now
	}
	w.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := Renew(rand.Reader, t.TempDir()); err == nil {
		t.Error("a sign that cannot be written is no error")
	}
}
