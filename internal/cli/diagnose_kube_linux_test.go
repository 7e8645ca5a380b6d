package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// The nodes of the test bed between which is diagnosed; faults are planted on the first.
const (
	plantedNode = "node-1"
	otherNode   = "node-2"
)

// diagnosed is `cnibench diagnose --json` between the two nodes.
func diagnosed(t *testing.T, args ...string) *diagnose.Verdict {
	t.Helper()
	code, out, messages := command(t, slices.Concat([]string{"diagnose", "--json", "--nodes", plantedNode + "," + otherNode}, podArgs(t), args)...)
	v := &diagnose.Verdict{}
	if err := json.Unmarshal([]byte(out), v); err != nil || (code == exit.Gate) != (v.Verdict == diagnose.Found) {
		t.Fatalf("exit code %d: %v: %s\n%s", code, err, messages, out)
	}
	return v
}

// tunnelOf is the device that carries pods' packets away from the node: its tunnel, else its
// uplink.
func tunnelOf(t *testing.T, bed kubetest.Bed) string {
	t.Helper()
	if name := strings.TrimSpace(bed.OnNode(t, plantedNode, `for d in /sys/class/net/*; do grep -q DEVTYPE=vxlan "$d/uevent" && basename "$d"; done; true`)); name != "" {
		return name
	}
	return "eth0"
}

// Each of five faults that are planted on one node of the test bed is named with that node, and
// with the device where it has one. That it comes first is for the matrix of docs/diagnose.md: a
// busy machine has causes of its own.
func TestKubeDiagnose(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	tunnel := tunnelOf(t, bed)
	shared, err := os.MkdirTemp("/var/tmp", "cnibench-test-") // the nodes have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	fill := filepath.Join(shared, "fillconntrack")
	build := exec.Command("go", "build", "-o", fill, "./tools/fillconntrack")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, plant := range []struct {
		cause, device   string
		plant, takeBack string
		args            []string
	}{
		{"offload-off", tunnel, "ethtool -K " + tunnel + " tx off tso off gso off", "ethtool -K " + tunnel + " tx on tso on gso on", nil},
		{"rate-limited", "eth0", "tc qdisc add dev eth0 root tbf rate 150mbit burst 256kb latency 20ms", "tc qdisc del dev eth0 root", nil},
		{"segments-lost", "", "nft 'table inet planted { chain f { type filter hook forward priority -10; meta length > 1514 numgen random mod 100 < 15 drop; }; }'", "nft delete table inet planted", nil},
		{"cpu-throttled", "", "true", "true", []string{"--pod-cpu", "200m", "--max-rate", "0"}},
		// All but a thousand, so that the pods come up; what is measured takes the rest.
		{"conntrack-full", "", fill + " -for 2m -most $(($(cat /proc/sys/net/netfilter/nf_conntrack_max) - $(cat /proc/sys/net/netfilter/nf_conntrack_count) - 1000))", "true", nil},
	} {
		t.Run(plant.cause, func(t *testing.T) {
			bed.OnNode(t, plantedNode, plant.plant)
			t.Cleanup(func() { bed.OnNode(t, plantedNode, plant.takeBack) })
			v := diagnosed(t, plant.args...)
			i := slices.IndexFunc(v.Causes, func(x diagnose.Claim) bool {
				return x.ID == plant.cause && x.Node == plantedNode && (plant.device == "" || x.Device == plant.device)
			})
			if i < 0 {
				t.Errorf("not named on %s %s: %s: %+v", plantedNode, plant.device, v.Summary, v.Causes)
			} else if i > 0 {
				t.Logf("it is number %d, the first is %s", i+1, v.Causes[0].ID)
			}
		})
	}
}

// A diagnosis that is killed while it tries a setting leaves nothing on the node and nothing in
// the cluster, and clean finds nothing to take back.
func TestKubeDiagnoseKilled(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	tunnel := tunnelOf(t, bed)
	bed.OnNode(t, plantedNode, "ethtool -K "+tunnel+" tx off tso off gso off")
	t.Cleanup(func() { bed.OnNode(t, plantedNode, "ethtool -K "+tunnel+" tx on tso on gso on") })
	features := "ethtool -k " + tunnel
	before := bed.OnNode(t, plantedNode, features)
	journal := func() string {
		return bed.OnNode(t, plantedNode, "ls /var/lib/cnibench/tune.journal 2>/dev/null || true")
	}

	cmd := exec.CommandContext(t.Context(), program, slices.Concat([]string{"diagnose", "--prove", "--privileged", "--max-rate", "0", "--cycles", "1", "--nodes", plantedNode + "," + otherNode}, podArgs(t))...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	wait(t, "a value that is tried", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it tried anything: %v: %s", err, said.String())
		default:
		}
		return journal() != ""
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	wait(t, "the end of the trial", func() bool { return journal() == "" })
	if after := bed.OnNode(t, plantedNode, features); after != before {
		t.Errorf("left on the node: %s, it had %s", after, before)
	}
	clean(t)
	out, err := exec.Command(program, slices.Concat([]string{"clean", "--privileged"}, podArgs(t))...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "restored") {
		t.Errorf("clean --privileged: %v: %s", err, out)
	}
}

// What a killed holder left is taken back by clean, and what the user applied before stays.
func TestKubeCleanTrials(t *testing.T) {
	bed, nodes := tunable(t)
	before := settings(t, bed, nodes)
	if code, _, messages := tuneNodes(t, "apply", "--sysctl", "net.ipv4.tcp_slow_start_after_idle=0"); code != exit.Done {
		t.Fatalf("apply: exit code %d: %s", code, messages)
	}
	applied := settings(t, bed, nodes)
	// What a holder writes that is killed after it has changed a value.
	bed.OnNode(t, nodes[0], `echo 11 >/proc/sys/net/ipv4/tcp_fin_timeout && cat >>/var/lib/cnibench/tune.journal <<-END
		{"step":"intent","n":1,"change":{"setting":"diagnose","kind":"file","name":"/proc/sys/net/ipv4/tcp_fin_timeout","from":"60","to":"11","written":"2026-01-01T00:00:00Z"}}
		{"step":"done","n":1,"read":"11"}
		END`)
	out, err := exec.Command(program, slices.Concat([]string{"clean", "--privileged"}, podArgs(t))...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "node "+nodes[0]) || !strings.Contains(string(out), "1 value restored") {
		t.Errorf("clean: %v: %s", err, out)
	}
	now := settings(t, bed, nodes)
	for _, node := range nodes {
		if now[node] != applied[node] {
			t.Errorf("%s is not as it was", node)
		}
	}
	if code, _, messages := tuneNodes(t, "revert"); code != exit.Done {
		t.Errorf("revert: exit code %d: %s", code, messages)
	}
	for node, text := range settings(t, bed, nodes) {
		if text != before[node] {
			t.Errorf("%s is not as it was before", node)
		}
	}
}
