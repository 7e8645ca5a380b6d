package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// The policy check tells a network that enforces NetworkPolicies from one that
// does not: flannel fails it, Cilium, Calico and Canal pass, as they are.
func TestKubeCheckPolicy(t *testing.T) {
	leavesNothing(t)
	product := clusterProduct(t)
	want, known := map[string]check.Conformance{"Flannel": check.Fail, "Cilium": check.Pass, "Calico": check.Pass, "Canal": check.Pass}[product]
	if !known {
		t.Skipf("the cluster's pod network is %s, and of Flannel, Cilium, Calico and Canal alone the test knows what they do; put one of them on it, e.g. testbed install flannel", product)
	}
	code, out, messages := command(t, append([]string{"check", "policy", "--json"}, podArgs(t)...)...)
	validate(t, "check-1.schema.json", []byte(out))
	var got run.CheckOutput
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	asked := 0
	for _, r := range got.Results {
		if r.Contender != kube.ThisClusterID {
			continue
		}
		asked++
		if r.Error != "" || r.Verdict() != want {
			t.Errorf("%s: verdict %s, want %s; %s %+v", product, r.Verdict(), want, r.Error, r.MainCase())
		}
		for _, c := range r.Cases {
			t.Logf("%s: %s %s: %s", c.Name, c.Verdict, c.Found, c.Text)
			if c.Name == "ingress-allowed" && c.Verdict != check.Pass {
				t.Errorf("%+v", c)
			}
		}
	}
	wantCode := map[check.Conformance]int{check.Fail: exit.Gate, check.Pass: exit.Done}[want]
	if asked != 1 || code != wantCode {
		t.Errorf("asked %d times, exit code %d, want %d: %s", asked, code, wantCode, messages)
	}
}

// A rule on one node that accepts everything in front of a product's chains leaves its
// policies half enforced: the check finds it, and names the node.
func TestKubeCheckPolicyHalf(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	if product := clusterProduct(t); !slices.Contains([]string{"Calico", "Canal", "Kube-router"}, product) {
		t.Skipf("the cluster's pod network is %s, whose policies such a rule does not go around; put Calico, Canal or kube-router on it, e.g. testbed install kuberouter", product)
	}
	// Products put their chains in front again.
	const node, rule = "node-2", "FORWARD -j ACCEPT"
	var planting sync.WaitGroup
	planting.Go(func() {
		bed.OnNode(t, node, `touch /run/planted
			while [ -e /run/planted ]; do
				[ "$(iptables -w -S FORWARD 1)" = "-A `+rule+`" ] || { iptables -w -D `+rule+`; iptables -w -I `+rule+`; }
				sleep 0.1
			done 2>/dev/null
			while iptables -w -D `+rule+` 2>/dev/null; do :; done`)
	})
	t.Cleanup(func() {
		bed.OnNode(t, node, "rm /run/planted")
		planting.Wait()
	})
	got, code := checkJSON(t, append([]string{"policy", "--case", "ingress-default-deny"}, podArgs(t)...)...)
	asked := 0
	for _, r := range got.Results {
		if r.Contender != kube.ThisClusterID {
			continue
		}
		asked++
		told := r.MainCase()
		if told == nil || code != exit.Gate || r.Verdict() != check.Fail || !strings.Contains(told.Next, "Every leak is towards pods on node-2: ") {
			t.Errorf("exit code %d, %s: %+v", code, r.Error, told)
		}
	}
	if asked != 1 {
		t.Errorf("the cluster's pod network was asked %d times", asked)
	}
}

// A policy engine that ends in the middle of the check ends the check, which names its program
// and node.
func TestKubeCheckPolicyEngineEnds(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	set, known := map[string]string{"Kube-router": "kube-router", "Cilium": "cilium", "Calico": "calico-node", "Canal": "canal"}[clusterProduct(t)]
	if !known {
		t.Skip("the cluster's pod network has no policy engine that the test knows; put kube-router, Cilium, Calico or Canal on it, e.g. testbed install kuberouter")
	}
	const node = "node-2"
	var planting sync.WaitGroup
	planting.Go(func() {
		time.Sleep(30 * time.Second) // the check takes longer
		for _, line := range strings.Split(bed.Do(t, "kubectl", "get", "pods", "-A", "--field-selector", "spec.nodeName="+node, "-o",
			`jsonpath={range .items[*]}{.metadata.ownerReferences[0].name} {.status.containerStatuses[0].containerID}{"\n"}{end}`), "\n") {
			if id, is := strings.CutPrefix(line, set+" containerd://"); is {
				bed.OnNode(t, node, "kill -9 $(grep -l "+id+" /proc/[0-9]*/cgroup | head -n 1 | cut -d / -f 3)")
			}
		}
	})
	defer planting.Wait()
	got, code := checkJSON(t, append([]string{"policy", "--contenders", kube.ThisClusterID}, podArgs(t)...)...)
	for _, r := range got.Results {
		told := r.MainCase()
		if told == nil || code != exit.Gate || told.Found != "crashed" || !strings.Contains(told.Text, " on "+node) {
			t.Errorf("exit code %d, %s: %+v", code, r.Error, told)
		}
	}
	if len(got.Results) != 1 {
		t.Errorf("%d results", len(got.Results))
	}
}

// Packet sizes and encryption are checked in pods: where the runtime lets a pod
// on the node's network watch its packets or a privileged one may, else
// encryption is skipped and says what would help. Canal's pods have an MTU that its VXLAN
// does not carry (contenders/canal.yaml).
func TestKubeCheckUnderlay(t *testing.T) {
	leavesNothing(t)
	want := map[string]check.Conformance{"mtu": check.Pass, "encryption": check.Pass}
	if clusterProduct(t) == "Canal" {
		want["mtu"] = check.Fail
	}
	for _, privileged := range []bool{false, true} {
		args := append([]string{"mtu,encryption"}, podArgs(t)...)
		if privileged {
			args = append(args, "--privileged")
		}
		got, _ := checkJSON(t, args...)
		for _, r := range got.Results {
			if r.Contender != kube.ThisClusterID {
				continue
			}
			told := r.MainCase()
			skipped := r.Check == "encryption" && !privileged && r.Verdict() == check.Skip && told != nil && strings.Contains(told.Next, "--privileged")
			if r.Error != "" || r.Verdict() != want[r.Check] && !skipped {
				t.Errorf("%s, privileged %v: verdict %s; %s %+v", r.Check, privileged, r.Verdict(), r.Error, r.Cases)
			}
		}
	}
}

// clusterProduct is the pod network that the cluster has.
func clusterProduct(t *testing.T) string {
	t.Helper()
	given := kubetest.GetCluster(t)
	a, err := kube.New(t.Context(), kube.Options{Kubeconfig: given.Kubeconfig, Image: given.Image})
	if err != nil {
		t.Fatal(err)
	}
	return a.ThisCluster().Product
}
