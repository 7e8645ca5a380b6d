package contender_test

import (
	"bufio"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/google/go-cmp/cmp"
)

// inLab are the contenders that the lab runs; all others of the catalogue say
// why not.
var inLab = []string{
	"antrea", "antrea-ipsec", "antrea-noencap", "antrea-wg", "calico", "calico-ebpf", "calico-ebpf-wg",
	"calico-ipip", "calico-noencap", "calico-vxlan", "calico-wg", "canal", "cilium", "cilium-hubble-full",
	"cilium-ipsec", "cilium-native", "cilium-netkit", "cilium-nohubble", "cilium-nokproxy", "cilium-wg",
	"flannel-aws-vpc", "flannel-host-gw", "flannel-ipip", "flannel-udp", "flannel-vxlan", "flannel-wireguard",
	"host", "ipvlan-l2", "ipvlan-l3", "kube-proxy-iptables", "kube-proxy-iptables-legacy", "kube-proxy-ipvs",
	"kube-proxy-nftables", "kubeovn", "kubeovn-tuned", "kubeovn-underlay", "kuberouter", "kuberouter-all",
	"macvlan", "weave", "weave-encrypted",
}

// notInLab completes the list of what the studies measured or excluded.
var notInLab = []string{
	"calico-vpp", "calico-vpp-ipsec", "calico-vpp-wg", "contiv-vpp", "kubeovn-stt", "romana", "tungsten-fabric",
}

func catalogue(t *testing.T) []*contender.Contender {
	t.Helper()
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCatalogueIsComplete(t *testing.T) {
	var lab, other []string
	for _, c := range catalogue(t) {
		if c.Lab.None == "" {
			lab = append(lab, c.ID)
		} else {
			other = append(other, c.ID)
		}
	}
	if diff := cmp.Diff(inLab, lab); diff != "" {
		t.Errorf("with a lab form: %s", diff)
	}
	if diff := cmp.Diff(notInLab, other); diff != "" {
		t.Errorf("without a lab form: %s", diff)
	}
}

// TestRemediesNameContenders: a remedy that sends the user to a contender
// sends them to one that exists and that the lab runs, or says "install".
func TestRemediesNameContenders(t *testing.T) {
	run := regexp.MustCompile(`Run ([a-z0-9-]+)(?: and ([a-z0-9-]+))?`)
	all := catalogue(t)
	for _, c := range all {
		if c.Lab.None == "" {
			continue
		}
		names := run.FindStringSubmatch(c.Lab.Remedy)
		if names == nil && !strings.HasPrefix(c.Lab.Remedy, "Install ") {
			t.Errorf("%s: remedy starts neither with Run nor with Install: %s", c.ID, c.Lab.Remedy)
			continue
		}
		for _, name := range names[min(1, len(names)):] {
			if name != "" && !slices.Contains(inLab, name) {
				t.Errorf("%s: remedy names %q, which the lab does not run", c.ID, name)
			}
		}
	}
}

// TestConfigurationHasSources: in a lab form every piece, and every value of
// a piece, stands under a comment that says what it copies.
func TestConfigurationHasSources(t *testing.T) {
	for _, id := range inLab {
		data, err := fs.ReadFile(contenders.FS, id+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		part := "" // the piece, or the block of values, that the source was given for
		inPieces, sourced := false, false
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for n := 1; lines.Scan(); n++ {
			line := lines.Text()
			key := strings.TrimSpace(line)
			switch {
			case line == "lab:":
				inPieces = true
			case key == "own:" || key == "reproduced:" || key == "kube:":
				inPieces = false
			case !inPieces:
			case strings.HasPrefix(key, "# source: "):
				sourced = true
			case key == "attach:" || key == "transport:" || key == "encryption:" || key == "extras:" || key == "service:":
				part, sourced = key, false
			case strings.HasPrefix(key, "- use:"):
				if !sourced {
					t.Errorf("%s.yaml:%d: %s names no source", id, n, key)
				}
				sourced = strings.Contains(key, "sysctl") // its values are on the next line
			case strings.HasPrefix(key, "#") || strings.HasPrefix(key, "use:") || key == "with:":
			case !sourced:
				t.Errorf("%s.yaml:%d: %s of %s names no source", id, n, key, part)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
