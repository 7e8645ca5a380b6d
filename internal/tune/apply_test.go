package tune

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/host"
)

// A full disk keeps no value from being restored, and does not outlast it.
func TestRevertFullDisk(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	before := snapshot(t, root)
	state := t.TempDir()
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout", "tw-reuse", "local-ports")
	j.disk = brokenDisk{}
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 3 || HasJournal(state) {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// What could not be noted is told while the journal stays, and found out again.
func TestRevertFullDiskKept(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	state := t.TempDir()
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout", "tw-reuse", "local-ports")
	(writer{t, root}).file("proc/sys/net/ipv4/tcp_fin_timeout", "33")
	j.disk = brokenDisk{}
	r, err := Revert(t.Context(), m, j, 0, false)
	if !errors.Is(err, syscall.ENOSPC) || len(r.Restored) != 2 || len(r.Kept) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = journalOf(t, m, state)
	if r, err := Revert(t.Context(), m, j, 0, true); err != nil || len(r.Restored) != 1 || HasJournal(state) {
		t.Fatalf("again: %+v, %v", r, err)
	}
}

// A disk that takes half of a line keeps none of it.
func TestAppendCutShort(t *testing.T) {
	const limited = "CNIBENCH_TUNE_LIMITED"
	if os.Getenv(limited) == "" { // the limit is the whole process'
		cmd := exec.Command(os.Args[0], "-test.run=^TestAppendCutShort$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	m, _ := build(t, shapes["laptop"])
	state := t.TempDir()
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout")
	path := filepath.Join(state, journalFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	limitFiles(t, len(before)+20, func() {
		if _, _, err := Apply(t.Context(), m, j, planOf(t, m, "tw-reuse")); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("applied with %v", err)
		}
	})
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the journal ends in half a line: %q, %v", after, err)
	}
	applyAll(t, m, j, "tw-reuse")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j = journalOf(t, m, state); len(j.Entries()) != 2 {
		t.Errorf("%+v", j.Entries())
	}
}

// A write that fails and yet changes something is cnibench's own all the same.
func TestRevertFailedWrite(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	before := snapshot(t, root)
	j := journalOf(t, m, t.TempDir())
	items := planOf(t, m, "local-ports")
	m.Files = halfway{m.Files}
	if made, failed, err := Apply(t.Context(), m, j, items); err != nil || len(made) != 0 || len(failed) != 1 {
		t.Fatal(made, failed, err)
	}
	m.Files = m.Files.(halfway).FS
	if s := StatusOf(t.Context(), m, j); len(s) != 1 || s[0].State != ChangeApplied {
		t.Errorf("%+v", s)
	}
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// Of a write that failed, too, a value that somebody has set since is kept.
func TestDriftAfterFailedWrite(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	j := journalOf(t, m, t.TempDir())
	items := planOf(t, m, "local-ports")
	m.Files = halfway{m.Files}
	if _, failed, err := Apply(t.Context(), m, j, items); err != nil || len(failed) != 1 {
		t.Fatal(failed, err)
	}
	m.Files = m.Files.(halfway).FS
	(writer{t, root}).file("proc/sys/net/ipv4/ip_local_port_range", "10000\t20000")
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Kept) != 1 || len(r.Restored) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A change that is under way when the user interrupts is made and read back; no other is
// begun.
func TestApplyInterrupted(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	ctx, cancel := context.WithCancel(t.Context())
	daemon := tunedDaemon{profile: "balanced", mode: "manual"}
	m.Programs = programs(daemon.run)
	items := planOf(t, m, "tuned", "tw-reuse")
	before := snapshot(t, root)
	m.Programs = interrupting{m.Programs, cancel}
	j := journalOf(t, m, t.TempDir())
	if made, _, err := Apply(ctx, m, j, items); !errors.Is(err, context.Canceled) || len(made) != 1 {
		t.Errorf("made %v, %v", made, err)
	}
	if e := j.Entries(); len(e) != 1 || !e[0].Done || e[0].Read != "network-latency" {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// interrupting cancels the context when tuned-adm sets a profile, and starts nothing for
// one that has ended.
type interrupting struct {
	host.Runner
	cancel func()
}

func (r interrupting) Start(ctx context.Context, c host.Command) (host.Process, error) {
	if c.Argv[0] == "tuned-adm" && c.Argv[1] == "profile" {
		r.cancel()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.Runner.Start(ctx, c)
}

// An offload that the driver does not switch now is not left as a wish, which the kernel
// could fulfil later.
func TestRefusedOffload(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	wishes := &wishfulNICs{NICs: m.NICs, wanted: map[string]bool{}}
	m.NICs = wishes
	j := journalOf(t, m, t.TempDir())
	made, failed, err := Apply(t.Context(), m, j, planOf(t, m, "offloads"))
	if err != nil || len(made) != 0 || len(failed) == 0 || !errors.Is(failed[0].Err, errUnchanged) {
		t.Fatal(made, failed, err)
	}
	active, err := m.NICs.Features("")
	if err != nil || len(wishes.wanted) == 0 {
		t.Fatal("nothing was asked for", err)
	}
	for feature, on := range wishes.wanted {
		if on != active[feature] {
			t.Errorf("%s is %s, and wanted %s", feature, onOff(active[feature]), onOff(on))
		}
	}
}

// wishfulNICs are drivers that switch no offload; the kernel remembers what was wanted.
type wishfulNICs struct {
	NICs
	wanted map[string]bool
}

func (w *wishfulNICs) SetFeature(_, feature string, on bool) error {
	w.wanted[feature] = on
	return nil
}

// What the kernel said is told also where the journal can't be written.
func TestRefusedOnFullDisk(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	j := journalOf(t, m, t.TempDir())
	items := planOf(t, m, "tw-reuse")
	m.Files = refusing{m.Files, "tcp_tw_reuse"}
	j.disk = &fullAfter{j.disk, 2} // the header and the intent
	if _, _, err := Apply(t.Context(), m, j, items); !errors.Is(err, syscall.EINVAL) || !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

// fullAfter is full after some more lines.
type fullAfter struct {
	appender
	left int
}

func (d *fullAfter) Append(line []byte) error {
	if d.left--; d.left < 0 {
		return syscall.ENOSPC
	}
	return d.appender.Append(line)
}

// halfway writes something else than it is told, and says that it failed.
type halfway struct{ host.FS }

func (h halfway) WriteFile(name string, _ []byte) error {
	return errors.Join(h.FS.WriteFile(name, []byte("1\t2\n")), syscall.EIO)
}

// What went away since stays in the journal, whichever error says that it is gone, and is
// restored when it has come back; force forgets it.
func TestRevertGone(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	j := journalOf(t, m, t.TempDir())
	applyAll(t, m, j, "rings", "tw-reuse")
	m.NICs = noNIC{m.NICs}
	if err := os.Remove(filepath.Join(root, "proc/sys/net/ipv4/tcp_tw_reuse")); err != nil {
		t.Fatal(err)
	}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Gone) != 3 || len(r.Failed)+len(r.Restored) != 0 || len(j.Entries()) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := RevertTo(t.Context(), m, j, 0); err == nil || !strings.Contains(err.Error(), "is not there now: should it come back, it may still have") {
		t.Errorf("a bench says %v", err)
	}
	m.NICs = m.NICs.(noNIC).NICs
	r, err = Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Gone) != 1 || len(r.Restored) != 2 || len(j.Entries()) != 1 {
		t.Fatalf("back again: %+v, %v", r, err)
	}
	r, err = Revert(t.Context(), m, j, 0, true)
	if err != nil || len(r.Gone) != 1 || len(j.Entries()) != 0 {
		t.Fatalf("by force: %+v, %v", r, err)
	}
}

type noNIC struct{ NICs }

func (noNIC) Rings(string) (Rings, error) { return Rings{}, syscall.ENODEV }

// Values of one network namespace are not written into another; those of the
// whole machine are restored from anywhere.
func TestOtherNamespace(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	w := writer{t, root}
	enter := func(namespace string) {
		t.Helper()
		if err := os.Remove(w.path("proc/self/ns/net")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		w.link("proc/self/ns/net", namespace)
	}
	state := t.TempDir()
	before := snapshot(t, root)
	enter("net:[4026531840]")
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout", "governor")
	enter("net:[4026532999]")
	if s := StatusOf(t.Context(), m, j); s[0].State != ChangeApplied || s[len(s)-1].State != ChangeElsewhere {
		t.Errorf("%+v", s)
	}
	applyAll(t, m, j, "tw-reuse")
	r, err := Revert(t.Context(), m, j, 0, true)
	if err != nil || len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Err.Error(), "net:[4026531840]") || len(j.Entries()) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, err := os.ReadFile(w.path("proc/sys/net/ipv4/tcp_fin_timeout")); err != nil || string(got) != "10\n" {
		t.Errorf("it was written: %q, %v", got, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	enter("net:[4026531840]")
	j = journalOf(t, m, state)
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 {
		t.Fatalf("back: %+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// Changes of which none was made leave no journal.
func TestApplyRefused(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	state := t.TempDir()
	j := journalOf(t, m, state)
	items := planOf(t, m, "tw-reuse")
	m.Files = refusing{m.Files, "tcp_tw_reuse"}
	if _, failed, err := Apply(t.Context(), m, j, items); err != nil || len(failed) != 1 {
		t.Fatal(failed, err)
	}
	if HasJournal(state) {
		t.Error("the journal is left")
	}
}

// limitFiles calls fn while this process can make no file longer, bytes.
func limitFiles(t *testing.T, size int, fn func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(size)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}()
	fn()
}
