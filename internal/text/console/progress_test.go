package console

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vbauerster/mpb/v8"
)

func TestProgressPlain(t *testing.T) {
	clock := time.Date(2026, 3, 14, 9, 15, 0, 0, time.UTC)
	var b bytes.Buffer
	p := &Progress{out: &b, now: func() time.Time { return clock }}
	p.Message("finding the highest rate\rthat the baseline sustains")
	p.Show("is for terminals")
	for i, s := range []struct {
		text  string
		after time.Duration
	}{
		{"round 1/2: calico", 0},
		{"round 1/2: calico: dts", time.Second},
		{"round 1/2: calico: dus", 5 * time.Second},
		{"round 1/2: calico: http-350", 5 * time.Second}, // quiet has passed
		{"round 1/2: calico-wg", time.Second},
		{"round 1/2: calico-wg: dts", time.Second},
		{"round 2/2: calico", time.Second},
		{"done", time.Second},
	} {
		clock = clock.Add(s.after)
		p.Step(i, 8, s.text, time.Duration(8-i)*10*time.Second)
	}
	p.Step(8, 8, "done", 0)
	p.Done()
	p.Done()
	p.Message("after")
	want := `finding the highest rate that the baseline sustains
0/8, 1m20s left  round 1/2: calico
3/8, 50s left  round 1/2: calico: http-350
6/8, 20s left  round 2/2: calico
7/8, 10s left  done
after
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestProgressToFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := NewProgress(f, 0)
	p.Step(1, 2, "round 1/1: host", time.Minute)
	p.Done()
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "1/2, 1m0s left  round 1/1: host\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// lockedBuffer is read by the test while the bar is drawn.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestProgressLive(t *testing.T) {
	var b lockedBuffer
	p := &Progress{out: &b, now: time.Now, container: mpb.New(mpb.WithOutput(&b), mpb.WithAutoRefresh(), mpb.WithRefreshRate(time.Millisecond))}
	awaits := func(want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !strings.Contains(b.String(), want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no %q in %q", want, b.String())
			}
		}
	}
	p.Message("before the first step")
	p.Step(3, 10, "round 1/2: canal: dts", time.Hour)
	awaits("─  3/10, ")
	awaits("left  round 1/2: canal: dts")
	p.Message("canal came up late")
	awaits("canal came up late\n")
	p.Show("head\nhost 1\n\x1b[1mcanal\x1b[0m 2\n")
	awaits("head\nhost 1\n\x1b[1mcanal\x1b[0m 2\n━")
	p.Show("head\n" + strings.Repeat("wide", 100))
	awaits("head\n" + strings.Repeat("wide", 20) + "\n━")
	p.Step(10, 10, "done", 0)
	p.Done()
	p.Done()
	p.Step(10, 10, "too late", 0)
	p.Message("after")
	awaits("before the first step\n")
	if got := b.String(); !strings.HasSuffix(got, "after\n") || strings.Contains(got, "too late") {
		t.Errorf("the end is %q", got)
	}
}

func TestProgressWithoutStep(t *testing.T) {
	var b lockedBuffer
	p := &Progress{out: &b, now: time.Now, container: mpb.New(mpb.WithOutput(&b), mpb.WithAutoRefresh())}
	p.Message("only this")
	p.Done()
	if got := b.String(); !strings.Contains(got, "only this\n") {
		t.Errorf("%q", got)
	}
}
