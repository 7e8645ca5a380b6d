//go:build linux

package tunnel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

func TestWireGuardPeers(t *testing.T) {
	f := wiretest.Three()
	keys := map[*wire.Node]wgtypes.Key{}
	for i, n := range f.Nodes {
		keys[n] = wgtypes.Key{byte(i + 1)}
	}
	for nodes, want := range map[bool]string{
		false: "10.10.0.2:51820 [{10.244.0.0 ffffff00}]\n10.10.0.4:51820 [{10.244.2.0 ffffff00}]\n",
		true:  "10.10.0.2:51820 [{10.244.0.0 ffffff00} {10.10.0.2 ffffffff}]\n10.10.0.4:51820 [{10.244.2.0 ffffff00} {10.10.0.4 ffffffff}]\n",
	} {
		var got strings.Builder
		for i, p := range wgPeers(f, f.Nodes[1], keys, 51820, nodes) {
			fmt.Fprintf(&got, "%s %v\n", p.Endpoint, p.AllowedIPs)
			if want := keys[f.Nodes[2*i]].PublicKey(); p.PublicKey != want {
				t.Errorf("peer %d has the wrong key", i)
			}
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWireGuardRoutes(t *testing.T) {
	f := wiretest.Three()
	for kind, want := range map[string]string{
		"none":    "",
		"network": "10.244.0.0/16 dev 7 table 0 type 0\n",
		"peers":   "10.244.0.0/24 dev 7 table 254 type 0\n10.244.2.0/24 dev 7 table 254 type 0\n",
		"table":   "10.244.0.0/24 dev 7 table 1 type 0\n10.244.1.0/24 dev 0 table 1 type 9\n10.244.2.0/24 dev 7 table 1 type 0\n",
	} {
		var got strings.Builder
		for _, r := range wgRoutes(f, f.Nodes[1], kind, 1, 7) {
			fmt.Fprintf(&got, "%s dev %d table %d type %d\n", r.Dst, r.LinkIndex, r.Table, r.Type)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	if err := WireGuard.Setup(t.Context(), f, wire.Params{"routes": "tabel"}); err == nil || !strings.Contains(err.Error(), `did you mean "table"`) {
		t.Error(err)
	}
}
