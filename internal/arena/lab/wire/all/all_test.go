//go:build linux

package all

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/plain"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/tunnel"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
)

func fabric() *wire.Fabric {
	return &wire.Fabric{
		MTU: 1500, Overhead: 50, PodNetwork: netip.MustParsePrefix("10.244.0.0/16"),
		Nodes: []*wire.Node{{
			Name: "node1", Addr: netip.MustParsePrefix("10.10.0.2/16"), PodCIDR: netip.MustParsePrefix("10.244.0.0/24"),
			HostRange: [2]netip.Addr{netip.MustParseAddr("10.10.1.10"), netip.MustParseAddr("10.10.1.250")},
		}},
	}
}

// Every attachment writes a configuration that names its plugins, the pods'
// MTU and addresses that its node owns.
func TestAttachments(t *testing.T) {
	for name, c := range map[string]struct {
		params wire.Params
		want   string
	}{
		"bridge":  {wire.Params{"name": "cni0"}, `{"bridge":"cni0","hairpinMode":true,"ipMasq":false,"ipam":{"ranges":[[{"subnet":"10.244.0.0/24"}]],"type":"host-local"},"isDefaultGateway":true,"mtu":1450,"promiscMode":false,"type":"bridge"}`},
		"ptp":     {nil, `{"ipMasq":false,"ipam":{"ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}],"type":"host-local"},"mtu":1450,"type":"ptp"}`},
		"macvlan": {nil, `{"ipam":{"ranges":[[{"gateway":"10.10.0.1","rangeEnd":"10.10.1.250","rangeStart":"10.10.1.10","subnet":"10.10.0.0/16"}]],"type":"host-local"},"master":"eth0","mode":"bridge","mtu":1450,"type":"macvlan"}`},
		"ipvlan":  {wire.Params{"mode": "l3"}, `{"ipam":{"ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}],"type":"host-local"},"master":"eth0","mode":"l3","mtu":1450,"type":"ipvlan"}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := LookupAttach(name)
			if err != nil {
				t.Fatal(err)
			}
			f := fabric()
			conf := a.Conf(f, f.Nodes[0], c.params)
			plugins := conf["plugins"].([]map[string]any)
			got, err := json.Marshal(plugins[0])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			for _, plugin := range []string{name, "host-local"} {
				if runs, _ := programs.Piece(name); !slices.Contains(runs, host.CNI(plugin)) {
					t.Errorf("plugin %s is not among the programs %v", plugin, runs)
				}
			}
		})
	}
}

func TestLookup(t *testing.T) {
	if _, err := LookupTransport("vxlam"); err == nil || !strings.Contains(err.Error(), `did you mean "vxlan"`) {
		t.Error(err)
	}
	if _, err := LookupAttach("brigde"); err == nil || !strings.Contains(err.Error(), `did you mean "bridge"`) {
		t.Error(err)
	}
	if err := (wire.Params{"prot": 1}).Check("vxlan", tunnel.VXLAN.Params); err == nil || !strings.Contains(err.Error(), `did you mean "port"`) {
		t.Error(err)
	}
}

// Keys that are not a namespace's own would reach the machine.
func TestSysctlKeys(t *testing.T) {
	for _, key := range []string{"kernel.panic", "vm.swappiness", "net.ipv4/../../kernel/panic"} {
		f := &wire.Fabric{}
		if err := plain.Sysctl.Setup(t.Context(), f, wire.Params{key: 1}); err == nil {
			t.Errorf("%s was accepted", key)
		}
	}
}

// Each piece has a row in package programs, if only an empty one.
func TestPiecesHaveRows(t *testing.T) {
	var names []string
	for _, x := range Attachments() {
		names = append(names, x.Name)
	}
	for _, x := range Transports() {
		names = append(names, x.Name)
	}
	for _, x := range Services() {
		names = append(names, x.Name)
	}
	for _, name := range names {
		if _, ok := programs.Piece(name); !ok {
			t.Errorf("%s has no row in internal/host/programs/pieces.yaml", name)
		}
	}
}
