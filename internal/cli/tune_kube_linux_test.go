package cli

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
	"github.com/cnibench/cnibench/internal/tune"
)

// harmless are settings of a node's network namespace alone: nodes of the test
// bed share a machine. The last one takes a program of the node.
var harmless = []string{"fin-timeout", "--sysctl", "net.ipv4.tcp_slow_start_after_idle=0", "notrack", "--set", "notrack.ports=9"}

// tuneNodes is `cnibench tune` on the nodes.
func tuneNodes(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return command(t, slices.Concat([]string{"tune", args[0], "--privileged"}, podArgs(t), args[1:])...)
}

// Settings are applied on all nodes, drift is seen, and after revert every node
// is as it was.
func TestKubeTune(t *testing.T) {
	bed, nodes := tunable(t)
	before := settings(t, bed, nodes)
	takeBack := "3 changes; take back with: cnibench tune revert --arena kube --kubeconfig "
	code, out, messages := tuneNodes(t, slices.Concat([]string{"apply"}, harmless)...)
	if code != exit.Done {
		t.Fatalf("apply: exit code %d: %s", code, messages)
	}
	for _, want := range []string{"nodes " + strings.Join(nodes, ", ") + "\n", "net.ipv4.tcp_fin_timeout: 60 → 10\n", takeBack} {
		if !strings.Contains(out, want) {
			t.Errorf("apply did not say %q:\n%s", want, out)
		}
	}
	if rules := bed.OnNode(t, nodes[0], "nft list table inet cnibench_notrack"); !strings.Contains(rules, "notrack") {
		t.Errorf("rules of %s: %s", nodes[0], rules)
	}
	// By hand on the node it is the same journal.
	bed.OnNode(t, nodes[0], "test -s /var/lib/cnibench/tune.journal && echo 30 > /proc/sys/net/ipv4/tcp_fin_timeout")

	want := map[string][]string{}
	for i, name := range nodes {
		want[name] = []string{"fin-timeout applied", "net.ipv4.tcp_slow_start_after_idle applied", "notrack applied"}
		if i == 0 {
			want[name][0] = "fin-timeout drifted"
		}
	}
	if diff := gocmp.Diff(want, standings(t)); diff != "" {
		t.Error(diff)
	}
	kept := "node " + nodes[0] + ": kept, because somebody has changed it since: net.ipv4.tcp_fin_timeout (was 60, applied 10, now 30)"
	if code, _, messages = tuneNodes(t, "revert"); code != exit.Failed || !strings.Contains(messages, kept) {
		t.Errorf("revert: exit code %d, want %d and %q: %s", code, exit.Failed, kept, messages)
	}
	// What was said is pasted.
	_, pasted, _ := strings.Cut(messages, "to restore it anyway: cnibench ")
	shell := exec.Command("sh", "-c", program+" "+pasted)
	if said, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(said), "1 value restored") {
		t.Errorf("%q: %v: %s", shell.Args, err, said)
	}
	if diff := gocmp.Diff(before, settings(t, bed, nodes)); diff != "" {
		t.Errorf("the nodes are not as they were: %s", diff)
	}
}

// A command that is ended on the way leaves nothing that clean and revert do
// not take back.
func TestKubeTuneEnded(t *testing.T) {
	bed, nodes := tunable(t)
	before := settings(t, bed, nodes)
	for name, test := range map[string]struct {
		when    func(*testing.T) bool
		signal  syscall.Signal
		removed string // by clean
	}{
		"interrupted before": {hasNamespace, syscall.SIGTERM, "nothing to clean\n"},
		"killed before":      {hasNamespace, syscall.SIGKILL, "removed cnibench-"},
		"killed after": {func(t *testing.T) bool {
			return bed.OnNode(t, nodes[0], "ls /var/lib/cnibench/tune.journal 2>/dev/null || true") != ""
		}, syscall.SIGKILL, "removed cnibench-"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, slices.Concat([]string{"tune", "apply", "--privileged"}, podArgs(t), harmless)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, name, func() bool { return test.when(t) })
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it was not ended")
			}
			if test.signal == syscall.SIGTERM && !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("it said: %s", stderr.String())
			}
			if removed := clean(t); !strings.HasPrefix(removed, test.removed) {
				t.Errorf("clean said %q, want %q: %s", removed, test.removed, stderr.String())
			}
			if code, _, messages := tuneNodes(t, "revert"); code != exit.Done {
				t.Errorf("revert: exit code %d: %s", code, messages)
			}
			if diff := gocmp.Diff(before, settings(t, bed, nodes)); diff != "" {
				t.Errorf("the nodes are not as they were: %s", diff)
			}
		})
	}
}

// tunable are the nodes, of which the test leaves nothing.
func tunable(t *testing.T) (kubetest.Bed, []string) {
	t.Helper()
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	return bed, slices.Sorted(maps.Keys(standings(t)))
}

// standings are what is applied on each node, and where it stands.
func standings(t *testing.T) map[string][]string {
	t.Helper()
	code, out, messages := tuneNodes(t, "status", "--json")
	if code != exit.Done {
		t.Fatalf("status: exit code %d: %s", code, messages)
	}
	var got struct {
		Schema string
		Nodes  map[string]struct {
			Schema  string
			Applied []struct{ Setting, Standing string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Schema != "cnibench/tune-nodes/1" {
		t.Fatalf("%v: %s", err, out)
	}
	list := map[string][]string{}
	for name, status := range got.Nodes {
		if status.Schema != "cnibench/tune-status/1" {
			t.Errorf("%s: %s", name, out)
		}
		list[name] = nil
		for _, a := range status.Applied {
			list[name] = append(list[name], a.Setting+" "+a.Standing)
		}
		slices.Sort(list[name])
	}
	return list
}

// settings are what each node's network is set to, and what of ours is there;
// an empty folder, which the machine below the nodes may have, is nothing.
func settings(t *testing.T, bed kubetest.Bed, nodes []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range nodes {
		all[name] = bed.OnNode(t, name, `find /var/lib/cnibench -mindepth 1 2>/dev/null; nft list tables
			find /proc/sys/net -type f -readable ! -name nf_conntrack_count | sort | while read -r f; do echo "$f: $(cat "$f" 2>&1)"; done`)
	}
	return all
}

// hasNamespace says that the cluster holds a namespace of cnibench.
func hasNamespace(t *testing.T) bool {
	t.Helper()
	cluster, err := kube.Connect(t.Context(), kube.Options{Kubeconfig: kubetest.GetCluster(t).Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	list, err := cluster.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "cnibench.io/run"})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items) > 0
}

// A setting of the nodes that is harmful on purpose shows where the nodes' own network is
// measured, and after it every node is as it was. Three rounds give the ratio, and no verdict.
func TestKubeTuneBench(t *testing.T) {
	bed, nodes := tunable(t)
	before := settings(t, bed, nodes)
	code, out, messages := command(t, slices.Concat([]string{"tune", "bench"}, podArgs(t), []string{"--privileged", "--contender", "host", "--step", "dts", "--json",
		"--sysctl", "net.ipv4.tcp_rmem=4096,4096,4096", "--rounds", "3", "--duration", "300ms", "--warmup", "100ms", "--out", t.TempDir() + "/run"})...)
	if code != exit.Done {
		t.Fatalf("exit code %d: %s\n%s", code, messages, out)
	}
	var got struct{ Effects []tune.Difference }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.ContainsFunc(got.Effects, func(e tune.Difference) bool {
		return e.Variant == "host+net.ipv4.tcp_rmem" && e.Metric == "goodput" && e.Ratio < 0.8 && e.Verdict == tune.TooFew
	}) {
		t.Errorf("the harm was not found: %s\n%s", out, messages)
	}
	if diff := gocmp.Diff(before, settings(t, bed, nodes)); diff != "" {
		t.Errorf("the nodes are not as they were: %s", diff)
	}
}
