package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// firstLine is a writer that says what its first line was.
type firstLine struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	line chan string
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Write(p)
	if line, _, whole := strings.Cut(f.text.String(), "\n"); whole {
		f.once.Do(func() { f.line <- line })
	}
	return len(p), nil
}

func TestExplore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a <run>")
	run := &result.Run{
		Schema: result.RunSchema, ID: "a-run", Started: time.Unix(0, 0).UTC(), Arena: "lab", Baseline: "host",
		Plan: result.Plan{Suite: "quick", Rounds: 1, Contenders: []result.Entry{{ID: "host"}}, Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Path: "pod"}}},
	}
	store, err := result.Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &firstLine{line: make(chan string, 1)}
	c := newExploreCmd()
	c.SetArgs([]string{dir})
	c.SetOut(out)
	c.SetErr(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	var address string
	select {
	case address = <-out.line:
	case err := <-ended:
		t.Fatal(err)
	}
	get := func() (tag, body string) {
		t.Helper()
		r, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", r.Status, err)
		}
		return r.Header.Get("ETag"), string(b)
	}
	tag, body := get()
	if !strings.Contains(body, "a-run") || !strings.Contains(body, "data-live=") || !strings.Contains(body, "connect-src &#39;self&#39;") || tag == "" {
		t.Errorf("no live page of the run: tag %s", tag)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(address); err == nil {
		t.Error("it still answers")
	}
}

func TestRunVersion(t *testing.T) {
	dir := t.TempDir()
	if _, err := runVersion(dir); err == nil {
		t.Error("a folder without run.json has a version")
	}
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		version, err := runVersion(dir)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	seen := map[string]bool{write("run.json", "{}"): true, write("samples.jsonl", ""): true, write("samples.jsonl", "x\n"): true, write("samples.jsonl", "x\ny\n"): true}
	if len(seen) != 4 {
		t.Errorf("%d versions of 4", len(seen))
	}
}

func TestExploreRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string][]string{"no run": {dir}, "another address": {dir, "--listen", "0.0.0.0:0"}, "a name": {dir, "--listen", "example.com:80"}, "none": {}} {
		c := newExploreCmd()
		c.SetArgs(args)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
