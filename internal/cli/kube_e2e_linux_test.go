package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// Tests of the arena kube run the real program against a real cluster.

// clusterArgs are the flags of a command against the cluster of the tests,
// whose nodes hold the image.
func clusterArgs(t *testing.T) []string {
	t.Helper()
	return []string{"--arena", run.Kube, "--kubeconfig", kubetest.GetCluster(t).Kubeconfig}
}

// podArgs are those of a command that makes pods.
func podArgs(t *testing.T) []string {
	t.Helper()
	return append(clusterArgs(t), "--image", kubetest.GetCluster(t).Image, "--pull-policy", "Never")
}

// brief makes a run of seconds a step.
var brief = []string{"--suite", "quick", "--rounds", "1", "--duration", "1s", "--warmup", "200ms", "--rates", "given"}

// kubeRun prepares a run in the cluster.
func kubeRun(t *testing.T, args ...string) *runCmd {
	t.Helper()
	r := &runCmd{dir: filepath.Join(t.TempDir(), "run")}
	r.Cmd = exec.CommandContext(t.Context(), program, slices.Concat([]string{"run", "--out", r.dir}, podArgs(t), args)...)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	r.Cancel = func() error { return r.Process.Signal(syscall.SIGTERM) }
	r.WaitDelay = 2 * time.Minute
	return r
}

// measured runs it to its end; a busy machine may have left no valid sample.
func (r *runCmd) measured(t *testing.T) *result.Record {
	t.Helper()
	if err := r.Run(); err != nil && r.ProcessState.ExitCode() != exit.Gate {
		t.Fatalf("%v: %v\n%s\n%s", r.Args, err, r.stderr.String(), r.stdout.String())
	}
	return r.load(t)
}

// clean is `cnibench clean --arena kube`: what it removed. Clean-ups call it,
// too, when the test's context has ended.
func clean(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"clean"}, clusterArgs(t)...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("clean: %v: %s%s", err, out, failed.Stderr)
	}
	return string(out)
}

// leavesNothing fails the test if it leaves something in the cluster.
func leavesNothing(t *testing.T) {
	t.Helper()
	clean(t)
	t.Cleanup(func() {
		if out := clean(t); out != "nothing to clean\n" {
			t.Errorf("the cluster held: %s", out)
		}
	})
}

// A run in a cluster gives what a run in the lab gives, with rates that it finds by itself.
func TestKubeRun(t *testing.T) {
	leavesNothing(t)
	found := slices.Concat(brief, []string{"--rates", "auto"})
	r := kubeRun(t, found...)
	rec := r.measured(t)
	if rec.Run.Arena != run.Kube || rec.Run.Baseline != "host" {
		t.Errorf("arena %s, baseline %s", rec.Run.Arena, rec.Run.Baseline)
	}
	for _, s := range steps(rec) {
		if s.Verdict != result.Valid {
			t.Logf("%s %s: %v", s.Contender, s.Step, s.Reasons) // a busy machine may spoil it
		}
		if s.Kernel == "" || len(s.Metrics) == 0 {
			t.Errorf("%s %s: kernel %q, %d metrics: %v", s.Contender, s.Step, s.Kernel, len(s.Metrics), s.Reasons)
		}
	}
	if n := len(steps(rec)); n != 4 {
		t.Errorf("%d samples, want 4: 2 contenders, 2 steps", n)
	}
	validate(t, "run-1.schema.json", read(t, filepath.Join(r.dir, "run.json")))
	for _, secret := range []string{kubetest.GetCluster(t).Kubeconfig, "kubeconfig"} {
		if bytes.Contains(read(t, filepath.Join(r.dir, "run.json")), []byte(secret)) {
			t.Errorf("run.json has %q", secret)
		}
	}
	lab := newRun(t, slices.Concat(found, []string{"--contenders", "macvlan"})...)
	lab.measured(t)
	if diff := gocmp.Diff(columns(lab.load(t), "macvlan"), columns(rec, "this-cluster")); diff != "" {
		t.Errorf("a sample has other figures than one of a lab's run:\n%s", diff)
	}
	code, out, messages := command(t, "report", r.dir, "--format", "json")
	if code != exit.Done && code != exit.Gate {
		t.Fatalf("report: exit code %d: %s", code, messages)
	}
	validate(t, "report-1.schema.json", []byte(out))
}

// columns are the names of the figures of each step, of samples that a busy
// machine has spoiled as well. Those of one side's CPUs are left out: the nodes
// of a test bed share theirs.
func columns(rec *result.Record, contender string) map[string][]string {
	list := map[string][]string{}
	for _, s := range steps(rec) {
		if s.Contender != contender {
			continue
		}
		names := slices.Collect(maps.Keys(s.Metrics))
		for _, spoiled := range s.DroppedClocks { // measured, though by a load generator that was late
			names = slices.AppendSeq(names, maps.Keys(spoiled.Metrics))
		}
		slices.Sort(names)
		list[s.Step] = slices.DeleteFunc(names, func(name string) bool { return !everywhere(name) })
	}
	return list
}

// everywhere says whether each arena measures the figure on each machine, however busy.
func everywhere(name string) bool {
	if m, _ := result.LookupMetric(name); m.Percent > 90 {
		return false // whether the requests carry it hangs on how many a busy machine makes
	}
	return !strings.HasPrefix(name, "cpu_client") && !strings.HasPrefix(name, "cpu_server") && !slices.Contains(someCPU, name)
}

// someCPU are the published sums, which want the CPUs of each side, too, the CPU that other
// processes and contenders used, which only a lab tells apart, and what is left without it,
// which a busy machine's kernel may count as nothing.
var someCPU = []string{
	result.CPUForeign, result.CPUStanding, "cpu_per_gbit_published", "cpu_per_gbit_user_system",
	result.CPUPerGbit, result.CPUPerRequest, result.CPUPerPacket,
}

// Without an image of its own a run takes one with a shell that the nodes have, and carries
// itself into the pods; a suite's own programs give way to this one's.
func TestKubeRunWithoutImage(t *testing.T) {
	leavesNothing(t)
	r := &runCmd{dir: filepath.Join(t.TempDir(), "run")}
	r.Cmd = exec.CommandContext(t.Context(), program, slices.Concat([]string{"run", "--out", r.dir}, clusterArgs(t), brief)...)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	rec := r.measured(t)
	if image := rec.Run.Environment["kube.image"]; !strings.Contains(image, "busybox") {
		t.Errorf("image %q: %s", image, r.stderr.String())
	}
	if n := len(steps(rec)); n != 4 {
		t.Errorf("%d samples, want 4: 2 contenders, 2 steps", n)
	}
	for _, s := range steps(rec) {
		if len(s.Metrics) == 0 {
			t.Errorf("%s %s: no figures: %v", s.Contender, s.Step, s.Reasons)
		}
	}
}

// A run that is killed leaves what clean finds, and goes on where it was.
func TestKubeKilled(t *testing.T) {
	leavesNothing(t)
	r := kubeRun(t, slices.Concat(brief, []string{"--rounds", "2"})...)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.sealed(t, 2)
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	if out := clean(t); !strings.Contains(out, "removed ") {
		t.Errorf("clean found nothing: %s", out)
	}
	file := filepath.Join(r.dir, "samples.jsonl")
	sealed := read(t, file)
	sealed = sealed[:bytes.LastIndexByte(sealed, '\n')+1]
	code, _, messages := command(t, append([]string{"run", "--resume", r.dir}, clusterArgs(t)[2:]...)...)
	if code != exit.Done && code != exit.Gate {
		t.Fatalf("resume: exit code %d: %s", code, messages)
	}
	if n := len(steps(r.load(t))); n != 8 {
		t.Errorf("%d samples, want 8: 2 contenders, 2 steps, 2 rounds", n)
	}
	if !bytes.HasPrefix(read(t, file), sealed) {
		t.Error("what was sealed changed")
	}
}

// A run that is interrupted takes everything away and says how it goes on.
func TestKubeInterrupted(t *testing.T) {
	leavesNothing(t)
	r := kubeRun(t, brief...)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.sealed(t, 1)
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	want := "cnibench run --resume " + r.dir + " --kubeconfig=" + kubetest.GetCluster(t).Kubeconfig
	if code := r.ProcessState.ExitCode(); code != exit.Failed || !strings.Contains(r.stderr.String(), want) {
		t.Errorf("exit code %d, want %d and %q: %s", code, exit.Failed, want, r.stderr.String())
	}
}

// Two contexts, here of one cluster, are measured one after the other and compared.
func TestKubeRunContexts(t *testing.T) {
	leavesNothing(t)
	config, err := clientcmd.LoadFromFile(kubetest.GetCluster(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	config.Contexts = map[string]*clientcmdapi.Context{"old": context, "new": context}
	config.CurrentContext = ""
	both := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, both); err != nil {
		t.Fatal(err)
	}
	r := kubeRun(t, slices.Concat(brief, []string{"--kubeconfig", both, "--context", "old,new", "--rounds", "2"})...)
	err = r.Run()
	dirs := []string{r.dir + "-1", r.dir + "-2"}
	switch code := r.ProcessState.ExitCode(); {
	case err != nil && code != exit.Gate:
		t.Fatalf("%v: %s", err, r.stderr.String())
	case err != nil: // a busy machine has spoiled all samples of a run, the first one's maybe
		t.Log(r.stderr.String())
		dirs = dirs[:1]
	}
	for _, dir := range dirs {
		rec, loadErr := result.Load(dir)
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		if n := len(steps(rec)); n != 8 {
			t.Errorf("%s: %d samples, want 8: 2 contenders, 2 steps, 2 rounds", dir, n)
		}
	}
	if want := "Context old (old) against context new (new)"; err == nil && (!strings.Contains(r.stdout.String(), want) || !strings.Contains(r.stdout.String(), "this-cluster")) {
		t.Errorf("no comparison after %q:\n%s", want, r.stdout.String())
	}
}

// What can't be is said with the next step, and nothing is left of the try.
func TestKubeRefusals(t *testing.T) {
	leavesNothing(t)
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown node":            {[]string{"--nodes", "no-such-node,other"}, exit.WrongUsage, `unknown node "no-such-node"`},
		"image without a shell":   {[]string{"--image", "docker.io/library/none:1"}, exit.Unsupported, "shell"},
		"image that is not there": {[]string{"--image", "cnibench.invalid/none:1"}, exit.Unsupported, "cnibench.invalid/none:1"},
		"another's contender":     {[]string{"--contenders", "calico-vxlan"}, exit.Unsupported, "--install"},
		"no scratch cluster":      {[]string{"--install", "--contenders", "calico-vxlan"}, exit.Unsupported, "scratch"},
		"a quantity that is none": {[]string{"--pod-memory", "much"}, exit.WrongUsage, `"much"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := kubeRun(t, slices.Concat(brief, test.args)...)
			_ = r.Run()
			if code := r.ProcessState.ExitCode(); code != test.code || !strings.Contains(r.stderr.String(), test.want) {
				t.Errorf("exit code %d, want %d and %q: %s", code, test.code, test.want, r.stderr.String())
			}
			if _, err := os.Stat(filepath.Join(r.dir, "run.json")); err == nil {
				t.Error("a run directory was written")
			}
		})
	}
}

func TestKubeProbe(t *testing.T) {
	leavesNothing(t)
	code, out, messages := command(t, append(append([]string{"probe"}, podArgs(t)...), "--json")...)
	if code != exit.Done {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	var p run.ClusterProbe
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Environment["kube.version"] == "" || len(p.Contenders) != 2 {
		t.Errorf("%s", out)
	}
}

func TestKubeCheckMTU(t *testing.T) {
	leavesNothing(t)
	code, out, messages := command(t, append(append([]string{"check", "mtu"}, podArgs(t)...), "--json")...)
	if code != exit.Done && code != exit.Gate {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	var o run.CheckOutput
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatal(err)
	}
	if o.Arena != run.Kube || o.Kernel == "" || len(o.Results) == 0 {
		t.Errorf("%s", out)
	}
}
