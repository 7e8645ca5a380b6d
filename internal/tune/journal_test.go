package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/host"
)

// tuneable are settings whose values lie in files, so that a crash loses none.
var tuneable = []string{"smt", "rps", "rfs", "local-ports", "tw-reuse"}

func journalOf(t testing.TB, m *Machine, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, m.BootID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// applyAll applies the settings and wants no failure.
func applyAll(t testing.TB, m *Machine, j *Journal, names ...string) []Change {
	t.Helper()
	made, failed, err := Apply(t.Context(), m, j, planOf(t, m, names...))
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	return made
}

// Apply and revert leave every file as it was, and the journal is gone.
func TestRevertRestores(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			m, root := build(t, s)
			state := filepath.Join(t.TempDir(), "state")
			before := snapshot(t, root)
			rings := m.NICs
			j := journalOf(t, m, state)
			made := applyAll(t, m, j, allNames()...)
			if len(made) == 0 || cmp.Equal(before, snapshot(t, root)) {
				t.Fatal("nothing was changed")
			}
			for _, s := range StatusOf(t.Context(), m, j) {
				if s.State != ChangeApplied {
					t.Errorf("%s is %s", s.Place, s.State)
				}
			}
			r, err := Revert(t.Context(), m, j, 0, false)
			if err != nil || len(r.Kept)+len(r.Failed) > 0 || len(r.Restored) != len(made) {
				t.Fatalf("%+v, %v", r, err)
			}
			if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
				t.Errorf("not restored: %s", diff)
			}
			if f, ok := rings.(*fakeNICs); ok && (f.rings.RX != 255 || f.features["rx-gro"]) {
				t.Errorf("the interface was not restored: %+v", f)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the state folder is left: %v", err)
			}
		})
	}
}

// Settings can be applied on top of others: every place gets its first value
// back.
func TestApplyTwice(t *testing.T) {
	m, root := build(t, shapes["study-2016"])
	before := snapshot(t, root)
	j := journalOf(t, m, t.TempDir())
	applyAll(t, m, j, "fin-timeout", "rps")
	mark := j.Mark()
	middle := snapshot(t, root)
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := must(Sysctl("net.ipv4.tcp_fin_timeout", "5"))
	items := must(Plan(f, []Wanted{{Setting: own}, {Setting: must(Lookup("tw-reuse"))}}))
	if _, failed, err := Apply(t.Context(), m, j, items); err != nil || failed != nil {
		t.Fatal(failed, err)
	}
	standings := map[string]ChangeState{}
	for _, s := range StatusOf(t.Context(), m, j) {
		standings[fmt.Sprint(s.Setting, " ", s.Place)] = s.State
	}
	if standings["fin-timeout net.ipv4.tcp_fin_timeout"] != ChangeReplaced || standings["net.ipv4.tcp_fin_timeout net.ipv4.tcp_fin_timeout"] != ChangeApplied {
		t.Error(standings)
	}
	for _, to := range []struct {
		mark int
		want map[string]string
	}{{mark, middle}, {0, before}} {
		if r, err := Revert(t.Context(), m, j, to.mark, false); err != nil || len(r.Kept)+len(r.Failed) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if diff := cmp.Diff(to.want, snapshot(t, root)); diff != "" {
			t.Error(diff)
		}
	}
}

// What somebody else has changed since is kept, named, and restored by force.
func TestDrift(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	before := snapshot(t, root)
	state := t.TempDir()
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout", "tw-reuse")
	w := writer{t, root}
	w.file("proc/sys/net/ipv4/tcp_fin_timeout", "33")
	if s := StatusOf(t.Context(), m, j)[1]; s.State != ChangeDrifted || s.Now != "33" || s.From != "60" || s.Read != "10" {
		t.Errorf("%+v", s)
	}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Kept) != 1 || len(r.Restored) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = journalOf(t, m, state) // it is still there
	if r, err := Revert(t.Context(), m, j, 0, true); err != nil || len(r.Restored) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A place that vanished, and one that cannot be written, each for itself.
func TestRevertFailures(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	j := journalOf(t, m, t.TempDir())
	applyAll(t, m, j, "fin-timeout", "tw-reuse", "local-ports")
	if err := os.Remove(filepath.Join(root, "proc/sys/net/ipv4/tcp_tw_reuse")); err != nil {
		t.Fatal(err)
	}
	m.Files = refusing{m.Files, "tcp_fin_timeout"}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Failed) != 1 || len(r.Restored) != 1 || len(r.Gone) != 1 || len(j.Entries()) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	m.Files = m.Files.(refusing).FS
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 {
		t.Fatalf("again: %+v, %v", r, err)
	}
}

// A change that the kernel refuses is told; the others are made.
func TestApplyFailure(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	before := snapshot(t, root)
	j := journalOf(t, m, t.TempDir())
	items := planOf(t, m, "fin-timeout", "tw-reuse")
	m.Files = refusing{m.Files, "tcp_tw_reuse"}
	made, failed, err := Apply(t.Context(), m, j, items)
	if err != nil || len(made) != 1 || len(failed) != 1 || failed[0].Setting != "tw-reuse" {
		t.Fatalf("made %v, failed %v, %v", made, failed, err)
	}
	m.Files = m.Files.(refusing).FS
	if _, err := Revert(t.Context(), m, j, 0, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// Without its journal nothing is touched.
func TestJournalFails(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	before := snapshot(t, root)
	j := journalOf(t, m, t.TempDir())
	j.disk = brokenDisk{}
	if made, _, err := Apply(t.Context(), m, j, planOf(t, m, "fin-timeout")); err == nil || len(made) > 0 {
		t.Fatalf("made %v, %v", made, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

type brokenDisk struct{}

func (brokenDisk) Append([]byte) error { return syscall.ENOSPC }

// After the machine was started anew its own values are back: revert only
// tidies up, and writes nothing over them.
func TestReboot(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	state := t.TempDir()
	before := snapshot(t, root)
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	w := writer{t, root}
	w.file("proc/sys/net/ipv4/tcp_fin_timeout", "60")
	w.file("proc/sys/kernel/random/boot_id", "another")
	j = journalOf(t, m, state)
	if s := StatusOf(t.Context(), m, j); len(s) != 1 || s[0].State != ChangeRebooted {
		t.Errorf("%+v", s)
	}
	if _, _, err := Apply(t.Context(), m, j, planOf(t, m, "tw-reuse")); err == nil || !strings.Contains(err.Error(), "tune revert") {
		t.Errorf("applied on top of another boot's: %v", err)
	}
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 0 || len(j.Entries()) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w.file("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555")
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A journal in which nothing holds, which a crash left, keeps nothing of its boot: what
// is applied after a reboot can be taken back.
func TestRebootAfterEnd(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	state := t.TempDir()
	lines := `{"schema":"` + Schema + `","boot":"the boot before","n":0}
{"step":"intent","n":0,"change":{"setting":"tw-reuse","kind":"file","name":"/proc/sys/net/ipv4/tcp_tw_reuse","from":"2","to":"1","written":"2025-11-03T09:30:02Z"}}
{"step":"done","n":0,"read":"1"}
{"step":"ended","n":0,"how":"restored"}
`
	if err := os.WriteFile(filepath.Join(state, journalFile), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	j := journalOf(t, m, state)
	applyAll(t, m, j, "fin-timeout")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = journalOf(t, m, state)
	if r, err := Revert(t.Context(), m, j, 0, false); err != nil || len(r.Restored) != 1 || HasJournal(state) {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestBusy(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	dir := t.TempDir()
	journalOf(t, m, dir)
	if _, err := OpenJournal(dir, ""); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}

// The folder that is locked is the one that is there, though every Close
// removes it.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var held atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				j, err := OpenJournal(dir, "")
				if errors.Is(err, ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if held.Add(1) != 1 {
					t.Error("two have the journal open")
				}
				runtime.Gosched()
				held.Add(-1)
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestDamagedJournal(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"{}\n", "not JSON\n", `{"schema":"cnibench/tune-journal/9","n":0}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, journalFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(dir, ""); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", text, err)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, journalFile)); string(got) != text {
			t.Errorf("it was changed to %q", got)
		}
	}
}

// refusing does not write one file.
type refusing struct {
	host.FS
	name string
}

func (r refusing) WriteFile(name string, data []byte) error {
	if strings.HasSuffix(name, r.name) {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.EINVAL}
	}
	return r.FS.WriteFile(name, data)
}

// The rest kills a process, with SIGKILL, before, within and after every write
// that Apply and Revert make, to the machine and to the journal.

const (
	killEnv  = "CNIBENCH_TUNE_KILL_AT" // the point at which the helper dies
	treeEnv  = "CNIBENCH_TUNE_TREE"
	stateEnv = "CNIBENCH_TUNE_STATE"
	workEnv  = "CNIBENCH_TUNE_WORK" // apply or revert
)

// fuse kills this process when it has burnt down.
type fuse struct{ left int }

func (f *fuse) burn() {
	if f.left--; f.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// rounding is a kernel that rounds the lowest local port up to a multiple of
// 4096.
type rounding struct{ host.FS }

func (r rounding) WriteFile(name string, data []byte) error {
	var low, high int
	if n, _ := fmt.Sscan(string(data), &low, &high); n == 2 && strings.HasSuffix(name, "ip_local_port_range") {
		data = fmt.Appendf(nil, "%d\t%d\n", (low+4095)/4096*4096, high)
	}
	return r.FS.WriteFile(name, data)
}

type deadlyFiles struct {
	host.FS
	fuse *fuse
}

func (d deadlyFiles) WriteFile(name string, data []byte) error {
	d.fuse.burn()
	err := d.FS.WriteFile(name, data)
	d.fuse.burn()
	return err
}

// deadlyDisk writes half of a line, then all of it.
type deadlyDisk struct {
	fileDisk
	fuse *fuse
}

func (d deadlyDisk) Append(line []byte) error {
	d.fuse.burn()
	if d.fuse.left == 1 { // the next point is within the line
		_ = d.fileDisk.Append(line[:len(line)/2])
	}
	d.fuse.burn()
	err := d.fileDisk.Append(line)
	d.fuse.burn()
	return err
}

// TestKillHelper is the process that is killed.
func TestKillHelper(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv(killEnv))
	if err != nil {
		return // not the helper
	}
	m := &Machine{Files: host.Tree(os.Getenv(treeEnv))}
	burning := &fuse{at}
	j, err := OpenJournal(os.Getenv(stateEnv), m.BootID())
	if err != nil {
		t.Fatal(err)
	}
	j.disk = deadlyDisk{fileDisk{j.folder}, burning}
	plain := m.Files
	m.Files = deadlyFiles{rounding{plain}, burning}
	if os.Getenv(workEnv) == "revert" {
		_, err = Revert(context.Background(), m, j, 0, false)
	} else {
		_, _, err = Apply(context.Background(), m, j, planOf(t, m, tuneable...))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// killAt runs the helper and says whether it was killed; if not, it is done.
func killAt(t *testing.T, root, state, work string, at int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillHelper$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killEnv, at), treeEnv+"="+root, stateEnv+"="+state, workEnv+"="+work)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	return true
}

func TestKilledApplying(t *testing.T) {
	m, root := build(t, shapes["study-2016"])
	m.NICs = nil
	before := snapshot(t, root)
	points := 0
	for at := 1; ; at++ {
		state := filepath.Join(t.TempDir(), "state")
		killed := killAt(t, root, state, "apply", at)
		revertAll(t, m, state)
		if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
			t.Fatalf("killed at point %d: %s", at, diff)
		}
		if !killed {
			break
		}
		points++
	}
	if points < 40 {
		t.Errorf("killed at %d points only", points)
	}
}

func TestKilledReverting(t *testing.T) {
	m, root := build(t, shapes["study-2016"])
	m.NICs = nil
	before := snapshot(t, root)
	for at := 1; ; at++ {
		state := filepath.Join(t.TempDir(), "state")
		j := journalOf(t, m, state)
		applyAll(t, m, j, tuneable...)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		killed := killAt(t, root, state, "revert", at)
		revertAll(t, m, state)
		if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
			t.Fatalf("killed at point %d: %s", at, diff)
		}
		if !killed {
			break
		}
	}
}

// revertAll takes back what a crash left, after status has looked at it.
func revertAll(t *testing.T, m *Machine, state string) {
	t.Helper()
	j := journalOf(t, m, state)
	for _, s := range StatusOf(t.Context(), m, j) {
		if s.State != ChangeApplied && s.State != ChangeReset {
			t.Errorf("%s: %+v", s.Place, s)
		}
	}
	r, err := Revert(t.Context(), m, j, 0, false)
	if err != nil || len(r.Kept)+len(r.Failed) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if HasJournal(state) {
		t.Error("the journal is left")
	}
}
