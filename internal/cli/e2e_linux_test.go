package cli

//make:alone 60

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/docs/schema"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// lab tests run the real program with the real tools in a real lab. Those that judge no
// figure run in parallel: a run changes nothing outside its namespaces, so that each of
// them may look at the whole machine before and after.

// runCmd is `cnibench run` with a fresh run directory.
type runCmd struct {
	*exec.Cmd
	dir            string
	stdout, stderr bytes.Buffer
}

// newRun prepares a run in the lab of a fresh run directory; a guest has tests of its own.
func newRun(t *testing.T, args ...string) *runCmd {
	t.Helper()
	r := &runCmd{dir: filepath.Join(t.TempDir(), "run")}
	r.Cmd = exec.CommandContext(t.Context(), program, append([]string{"run", "--out", r.dir, "--arena", "lab"}, args...)...)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	r.Cancel = func() error { return r.Process.Signal(syscall.SIGTERM) }
	r.WaitDelay = 10 * time.Second
	return r
}

// must runs it to its end and wants exit code 0.
func (r *runCmd) must(t *testing.T) *result.Record {
	t.Helper()
	if err := r.Run(); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", r.Args, err, r.stderr.String(), r.stdout.String())
	}
	return r.load(t)
}

func (r *runCmd) load(t *testing.T) *result.Record {
	t.Helper()
	rec, err := result.Load(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// lab waits for the lab of the started run.
func (r *runCmd) lab(t *testing.T) lab.Running {
	t.Helper()
	var found lab.Running
	wait(t, "the lab", func() bool {
		labs, err := lab.FindRunning()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range labs {
			if l.Launcher == r.Process.Pid && len(l.Endpoints) > 0 {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

// sealed waits until that many samples of steps are on the disk; the run must not end before.
func (r *runCmd) sealed(t *testing.T, n int) {
	t.Helper()
	wait(t, fmt.Sprintf("%d samples", n), func() bool {
		if ended(t, r.Process.Pid) {
			t.Fatalf("the run ended before it had %d samples: %s", n, r.stderr.String())
		}
		b, _ := os.ReadFile(filepath.Join(r.dir, "samples.jsonl"))
		return bytes.Count(b, []byte("\n"))-bytes.Count(b, []byte(`"step":"setup"`)) >= n
	})
}

// ended says whether a child of this process has ended; it can be waited for afterwards.
func ended(t *testing.T, pid int) bool {
	t.Helper()
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return info.Signo != 0
}

// wait polls until ok, within a bound that no busy machine reaches: a cluster takes more
// than a minute to the first sample of a run, on an idle machine.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited for %s in vain", what)
}

const smallDisk = "cnibench-test"

// machine is what a run must leave as it was.
func machine(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, argv := range [][]string{{"ip", "-o", "link"}, {"ip", "netns", "list"}, {"ip", "route", "show", "table", "all"}, {"nft", "list", "ruleset"}} {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil && os.Geteuid() == 0 {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
		fmt.Fprintf(&b, "%v\n%s\n", argv, out)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if !strings.HasPrefix(line, smallDisk+" ") { // TestFullDisk's, which runs beside others
			b.WriteString(line)
		}
	}
	return b.String()
}

// unchanged fails the test if its run leaves something on the machine.
func unchanged(t *testing.T) {
	before := machine(t)
	t.Cleanup(func() {
		if diff := cmp.Diff(before, machine(t)); diff != "" {
			t.Errorf("the machine changed: %s", diff)
		}
	})
}

// steps are the samples without the set-up ones.
func steps(rec *result.Record) []result.Sample {
	return slices.DeleteFunc(slices.Clone(rec.Samples), func(s result.Sample) bool { return s.Step == result.SetupStep })
}

// small is a run of two contenders and two steps that takes seconds. It searches for no
// rate, which takes as long as the rest; TestRunValidates lets it.
var small = []string{"--suite", "quick", "--contenders", "flannel-vxlan", "--rounds", "2", "--duration", "500ms", "--warmup", "100ms", "--rates", "given"}

// endless is a run that ends within minutes on no machine: it has to be ended.
var endless = []string{"--suite", "quick", "--contenders", "host", "--steps", "dts", "--rounds", "50", "--duration", "1s", "--warmup", "100ms"}

func TestRunValidates(t *testing.T) {
	t.Parallel()
	unchanged(t)
	r := newRun(t, append(slices.Clone(small), "--rates", "auto")...)
	rec := r.must(t)
	if n := len(steps(rec)); n != 8 {
		t.Errorf("%d samples, want 8: 2 contenders, 2 steps, 2 rounds", n)
	}
	validate(t, "run-1.schema.json", read(t, filepath.Join(r.dir, "run.json")))
	lines := bufio.NewScanner(bytes.NewReader(read(t, filepath.Join(r.dir, "samples.jsonl"))))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		validate(t, "sample-1.schema.json", lines.Bytes())
	}
	out, err := exec.Command(program, "report", r.dir, "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	validate(t, "report-1.schema.json", out)
	if page := read(t, filepath.Join(r.dir, "report.html")); !bytes.Contains(page, []byte("flannel-vxlan")) {
		t.Error("report.html does not name the contender")
	}
	if !strings.Contains(r.stdout.String(), "flannel-vxlan") {
		t.Errorf("the table does not name the contender:\n%s", r.stdout.String())
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func validate(t *testing.T, name string, doc []byte) {
	t.Helper()
	b, err := schema.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, s); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, doc)
	}
	if err := compiled.Validate(v); err != nil {
		t.Errorf("%s: %v\n%.2000s", name, err, doc)
	}
}

// A run that is killed leaves nothing behind, and goes on where it was.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	unchanged(t)
	r := newRun(t, small...)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.sealed(t, 3)
	l := r.lab(t)
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	pids := []int{l.Init}
	for _, pid := range l.Endpoints {
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		wait(t, fmt.Sprintf("process %d to end", pid), func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	before := steps(r.load(t))

	again := exec.Command(program, "run", "--resume", r.dir)
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("--resume: %v\n%s", err, out)
	}
	rec := r.load(t)
	if n := len(steps(rec)); n != 8 {
		t.Errorf("%d samples after --resume, want 8", n)
	}
	if len(rec.SealedKeys()) != len(rec.Samples) {
		t.Error("--resume repeated a sample")
	}
	for i, s := range before {
		if got := steps(rec)[i]; got.Started != s.Started {
			t.Errorf("sample %d changed after it was sealed", i)
		}
	}
}

// A lab that dies, of want of memory or because the user can't wait, leaves a
// valid run, and the program says how to go on with it.
func TestLabKilled(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, r *runCmd, init int){
		"by the kernel": func(t *testing.T, _ *runCmd, init int) {
			if err := syscall.Kill(init, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		"by signals until it ends": func(_ *testing.T, r *runCmd, init int) {
			for r.Process.Signal(syscall.SIGTERM) == nil && !errors.Is(syscall.Kill(init, 0), syscall.ESRCH) {
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t)
			r := newRun(t, endless...)
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			l := r.lab(t)
			r.sealed(t, 1)
			end(t, r, l.Init)
			err := r.Wait()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != exit.Failed {
				t.Fatalf("ended with %v, want exit code %d\n%s", err, exit.Failed, r.stderr.String())
			}
			if text := r.stderr.String(); !strings.Contains(text, "what is sealed is a valid run: go on with `cnibench run --resume "+r.dir) {
				t.Errorf("does not say how to go on:\n%s", text)
			}
		})
	}
}

// Ctrl-C ends the step and leaves a valid run.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	unchanged(t)
	r := newRun(t, endless...)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.sealed(t, 2)
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := r.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exit.Failed {
		t.Fatalf("ended with %v, want exit code %d\n%s", err, exit.Failed, r.stderr.String())
	}
	if !strings.Contains(r.stderr.String(), "--resume "+r.dir) {
		t.Errorf("does not say how to go on:\n%s", r.stderr.String())
	}
	out, err := exec.Command(program, "report", r.dir, "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Findings []struct{ Code string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Findings, func(f struct{ Code string }) bool { return f.Code == "incomplete_run" }) {
		t.Errorf("the report does not say that the run is incomplete: %v", report.Findings)
	}
}

// A server that dies spoils its sample and no other.
func TestServerDies(t *testing.T) {
	t.Parallel()
	unchanged(t)
	r := newRun(t, "--suite", "quick", "--contenders", "host", "--rates", "given", "--rounds", "2", "--duration", "2s", "--warmup", "1s")
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	l := r.lab(t)
	var server int
	wait(t, "a server", func() bool { server = inLab(t, l, "cnibench", "stream"); return server != 0 })
	time.Sleep(time.Second) // into the load
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, r.stderr.String())
	}
	failed := 0 // a busy machine may spoil others, which have their figures nevertheless
	for _, s := range steps(r.load(t)) {
		t.Logf("%s: %v", s.Step, s.Reasons)
		if slices.ContainsFunc(s.Reasons, func(r result.Reason) bool { return r.Code == "workload_failed" }) {
			failed++
		}
		if s.Verdict == result.Invalid && len(s.Reasons) == 0 {
			t.Errorf("%s is invalid without a reason", s.Step)
		}
	}
	if failed != 1 {
		t.Errorf("the workload failed in %d samples, want the one whose server died", failed)
	}
}

// inLab finds a process of the lab by its program and an argument.
func inLab(t *testing.T, l lab.Running, name, arg string) int {
	t.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", l.Init))
	if err != nil {
		return 0
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if other, err := os.Readlink(dir + "/ns/pid_for_children"); err != nil || other != ns {
			continue
		}
		b, _ := os.ReadFile(dir + "/cmdline")
		args := strings.Split(string(b), "\x00")
		if filepath.Base(args[0]) == name && slices.Contains(args, arg) {
			var pid int
			fmt.Sscan(filepath.Base(dir), &pid)
			return pid
		}
	}
	return 0
}

// A link that vanishes in the middle of a step spoils what crosses it, and
// the next contender is whole again.
func TestLinkVanishes(t *testing.T) {
	t.Parallel()
	unchanged(t)
	r := newRun(t, "--suite", "quick", "--contenders", "host", "--rates", "given", "--rounds", "2", "--duration", "1s")
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	l := r.lab(t)
	wait(t, "a load", func() bool { return inLab(t, l, "cnibench", "stream") != 0 })
	argv := []string{"enter", "node1", "--lab", fmt.Sprint(l.Init), "--", "ip", "link", "del", "eth0"}
	if out, err := exec.Command(program, argv...).CombinedOutput(); err != nil {
		t.Fatalf("enter: %v\n%s", err, out)
	}
	if err := r.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, r.stderr.String())
	}
	valid := map[int]int{}
	invalid := 0
	for _, s := range steps(r.load(t)) {
		if s.Verdict == result.Valid {
			valid[s.Round]++
		} else {
			invalid++
		}
	}
	if invalid == 0 || valid[2] == 0 {
		t.Errorf("%d invalid samples, valid by round %v: want the spoiled round and a whole one", invalid, valid)
	}
}

// The line rate holds, and goodput stays below what headers leave of it; a
// low one, which a busy machine reaches as well. A receiver that the machine kept waiting
// before the window reads in the window what arrived before: such a sample is invalid.
func TestLineRate(t *testing.T) {
	needs.Slow(t, "measures a line rate")
	unchanged(t)
	r := newRun(t, "--suite", "quick", "--contenders", "host", "--rounds", "1", "--duration", "2s", "--warmup", "1s", "--line-rate", "50M", "--mtu", "9000")
	for _, s := range steps(r.must(t)) {
		late := slices.ContainsFunc(s.Reasons, func(r result.Reason) bool { return r.Code == "above_line_rate" })
		if g, ok := s.Metrics["goodput"]; ok && (g > 50e6*result.LineRateTolerance && !late || g < 25e6) {
			t.Errorf("goodput %.0f bit/s at a line rate of 50 Mbit/s", g)
		}
	}
}

// A user's own CNI configuration runs as a contender.
func TestCustomConf(t *testing.T) {
	t.Parallel()
	unchanged(t)
	conf := filepath.Join(t.TempDir(), "mine.conflist")
	text := `{"cniVersion": "1.0.0", "name": "mine", "plugins": [{"type": "bridge", "bridge": "br-mine", "isDefaultGateway": true,
		"ipam": {"type": "host-local", "ranges": [[{"subnet": "usePodCidr"}]]}}]}`
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, "--suite", "quick", "--contenders", "custom", "--cni-conf", conf, "--rates", "given", "--rounds", "1", "--duration", "500ms")
	rec := r.measured(t)
	custom, host := columns(rec, "custom"), columns(rec, "host")
	if diff := cmp.Diff(host, custom); len(custom) != 2 || diff != "" {
		t.Errorf("figures of %d steps, want 2 with those of the host (-host +custom):\n%s", len(custom), diff)
	}
	for _, s := range steps(rec) {
		for _, why := range s.Reasons { // a busy machine may spoil a sample
			t.Logf("%s %s: %s: %s", s.Contender, s.Step, why.Code, why.Text)
		}
	}
}

// A disk that becomes full in a run spoils samples but not the run; what was sealed is kept.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small file system: run `make test` as root")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount(smallDisk, dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	r := newRun(t, endless...)
	r.dir = filepath.Join(dir, "run")
	r.Args[3] = r.dir
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.sealed(t, 1)
	if err := fill(filepath.Join(dir, "padding")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	err := r.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatalf("a full disk went unnoticed: %v\n%s", err, r.stderr.String())
	}
	if !strings.Contains(r.stderr.String(), "space") {
		t.Errorf("does not name the cause:\n%s", r.stderr.String())
	}
	if len(r.load(t).Samples) == 0 {
		t.Error("nothing that was sealed can be read")
	}
}

// fill writes into the file until an error.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	return err
}

// Without root the lab runs in a user namespace, with every contender that
// root has.
func TestRunAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("is an ordinary user already: the other tests prove it")
	}
	t.Parallel()
	unchanged(t)
	r := newRun(t, "--suite", "quick", "--steps", "dts", "--rounds", "1", "--duration", "300ms", "--warmup", "0s")
	asUser(t, r)
	rec := r.must(t)
	for _, s := range rec.Samples {
		if s.Step == result.SetupStep && s.Verdict != result.Valid {
			t.Errorf("%s on %s: %v", s.Contender, s.Underlay, s.Reasons)
		}
	}
	for _, id := range []string{"host", "flannel-host-gw", "flannel-aws-vpc", "flannel-vxlan", "calico-noencap", "calico-vxlan", "canal", "macvlan"} {
		if !slices.ContainsFunc(rec.Samples, func(s result.Sample) bool { return s.Contender == id }) {
			t.Errorf("%s did not run without root", id)
		}
	}
}

// asUser runs the command as nobody, in a folder that nobody may write.
func asUser(t *testing.T, r *runCmd) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "cnibench-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	r.dir = filepath.Join(dir, "run")
	r.Args[3] = r.dir
	r.Dir = dir
	r.Env = append(os.Environ(), "HOME="+dir)
	r.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// Where the kernel refuses namespaces, the run says so and what would help.
func TestNoNamespaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to take namespaces from a user: run `make test` as root")
	}
	// In a user namespace whose own limit is zero no further one can be made.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	script := fmt.Sprintf("echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --reuid 65534 --regid 65534 --clear-groups %s run --out /tmp/cnibench-never", program)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	everyone := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: everyone, GidMappings: everyone, GidMappingsEnableSetgroups: true}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exit.Unsupported {
		t.Fatalf("ended with %v, want exit code %d\n%s", err, exit.Unsupported, out)
	}
	if !bytes.Contains(out, []byte("user namespaces")) || !bytes.Contains(out, []byte("sysctl")) {
		t.Errorf("does not say why and what would help:\n%s", out)
	}
}
