package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/tune"
)

// rootVar names a tree of files for a holder instead of this machine.
const rootVar = "CNIBENCH_TEST_ROOT"

const triedFile = "/proc/sys/net/ipv4/tcp_fin_timeout"

// triedTree is a machine of one setting, and a trial of it.
func triedTree(t *testing.T) (root string, try Try, value func() string) {
	t.Helper()
	root = t.TempDir()
	file := filepath.Join(root, triedFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("60\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	value = func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	return root, Try{Journal: filepath.Join(t.TempDir(), "state"), Changes: []diagnose.Change{{Kind: "file", Name: triedFile, To: "10"}}}, value
}

// holdTree is Hold on a tree of files.
func holdTree(root string) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	setName(holderName)
	var t Try
	if err := json.NewDecoder(os.Stdin).Decode(&t); err == nil {
		_ = hold(&tune.Machine{Files: host.Tree(root)}, t, os.Stdin, os.Stdout, time.Minute)
	}
}

// What was changed is taken back when the input ends or the time is over; what can't be
// changed leaves nothing.
func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		in    io.Reader
		limit time.Duration
		to    string
		want  []bool // whether each answer is an error
	}{
		"the input ends":   {strings.NewReader(""), time.Hour, "10", []bool{false, false}},
		"the time is over": {silent{}, time.Millisecond, "10", []bool{false, true}},
		"nothing to do":    {silent{}, time.Hour, "60", []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			root, try, value := triedTree(t)
			try.Changes[0].To = test.to
			var out bytes.Buffer
			during := ""
			err := hold(&tune.Machine{Files: host.Tree(root)}, try, test.in, writerFunc(func(b []byte) (int, error) {
				if during == "" {
					during = value()
				}
				return out.Write(b)
			}), test.limit)
			if err != nil {
				t.Error(err)
			}
			var got []bool
			for r := json.NewDecoder(&out); ; {
				var a held
				if err := r.Decode(&a); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				got = append(got, a.err() != nil)
			}
			if len(got) != len(test.want) || got[0] != test.want[0] || got[len(got)-1] != test.want[len(got)-1] {
				t.Errorf("errors %v, want %v", got, test.want)
			}
			if during != test.to || value() != "60" || tune.HasJournal(try.Journal) {
				t.Errorf("%s during the trial and %s after it; journal: %t", during, value(), tune.HasJournal(try.Journal))
			}
		})
	}
}

// silent neither gives anything nor ends.
type silent struct{}

func (silent) Read([]byte) (int, error) { select {} }

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// However the agent of a trial ends, the value comes back without anyone's help.
func TestTryIsTakenBack(t *testing.T) {
	for name, end := range map[string]func(c *Client, wrapper *cut) error{
		"as asked":            func(c *Client, _ *cut) error { return c.Untry(context.Background()) },
		"the agent is closed": func(c *Client, _ *cut) error { return c.Close() },
		"the stream breaks":   func(_ *Client, w *cut) error { w.cancel(); return nil }, // its client was killed
	} {
		t.Run(name, func(t *testing.T) {
			root, try, value := triedTree(t)
			t.Setenv(rootVar, root)
			ctx, cancel := context.WithCancel(t.Context())
			w := &cut{cancel: cancel}
			c, err := Start(ctx, w, self(t), map[string]string{"endpoint": "x"}, sysmon.ScopePod)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if err := c.Try(t.Context(), try); err != nil {
				t.Fatal(err)
			}
			if got := value(); got != "10" {
				t.Errorf("%s while it is tried", got)
			}
			if err := c.Try(t.Context(), try); err == nil {
				t.Error("a second trial beside the first")
			}
			if err := end(c, w); err != nil {
				t.Error(err)
			}
			for value() != "60" || tune.HasJournal(try.Journal) { // if it stays, the test's own limit ends it
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// cut starts the agent as in a pod, by a wrapper that kills it when the stream breaks.
type cut struct{ cancel context.CancelFunc }

func (w *cut) Start(ctx context.Context, c host.Command) (host.Process, error) {
	c.Env = append(c.Env, modeVar+"=serve")
	return StartExec(ctx, wrapper, c)
}

// An agent that is killed takes its trial along, and not what takes it back.
func TestTryKilled(t *testing.T) {
	root, try, value := triedTree(t)
	t.Setenv(rootVar, root)
	c := start(t, child{t, "serve"}, sysmon.ScopePod)
	if err := c.Try(t.Context(), try); err != nil {
		t.Fatal(err)
	}
	if err := c.process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for value() != "60" || tune.HasJournal(try.Journal) {
		time.Sleep(time.Millisecond)
	}
}

// What a holder that was killed itself has left is taken back by the next look, and what the
// user applied before stays.
func TestSettle(t *testing.T) {
	root, try, value := triedTree(t)
	m := &tune.Machine{Files: host.Tree(root)}
	if n, err := settle(m, try.Journal); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	apply := func(name, to string) {
		j, err := tune.OpenJournal(try.Journal, m.BootID())
		if err != nil {
			t.Fatal(err)
		}
		place := tune.Place{Kind: "file", Name: triedFile}
		_, failed, err := tune.Apply(t.Context(), m, j, []tune.Item{changed(name, place, value(), to)})
		if err := errors.Join(err, j.Close()); err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
	}
	apply("of-the-user", "30")
	apply(trialSetting, "10")
	if n, err := settle(m, try.Journal); n != 1 || err != nil || value() != "30" {
		t.Fatal(n, err, value())
	}
	if n, err := settle(m, try.Journal); n != 0 || err != nil || value() != "30" {
		t.Fatal(n, err, value())
	}
}

func changed(name string, place tune.Place, from, to string) tune.Item {
	item := tune.Item{Setting: tune.Setting{Name: name}, State: tune.StateChange}
	item.Changes = append(item.Changes, tune.Change{Place: place, From: from, To: to})
	return item
}
