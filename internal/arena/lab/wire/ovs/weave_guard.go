//go:build linux

package ovs

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// WeaveGuard writes the iptables rules of Weave Net's encryption. They mark VXLAN packets to
// other nodes, so that the policies of piece esp encrypt them, and drop VXLAN packets that
// arrive or would leave without ESP. The parameters port, spi and mark are those of esp.
var WeaveGuard = wire.Transport{
	Name:    "weave-guard",
	Summary: "marks VXLAN packets for ESP and drops those without, by iptables (Weave Net's encryption)",
	Params:  []string{"port", "spi", "mark"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		for _, n := range f.Nodes {
			rules := weaveGuardRules(f, n, p.Int("port", weavePort), p.Int("spi", wire.DefaultSPI), p.Int("mark", 0x20000))
			lock := []string{"XTABLES_LOCKFILE=" + n.Dir + "/xtables.lock"}
			if err := n.Feed(ctx, []byte(rules), lock, "iptables-restore", "-w", "5", "--noflush"); err != nil {
				return fmt.Errorf("weave-guard: %s: %w", n.Name, err)
			}
		}
		return nil
	},
}

// weaveGuardRules returns the node's rules, as net/ipsec/ipsec.go of Weave Net
// 2.5.1 appends them.
func weaveGuardRules(f *wire.Fabric, n *wire.Node, port, spi, mark int) string {
	bit := fmt.Sprintf("%#x/%#x", mark, mark)
	var in, drop, out strings.Builder
	for _, peer := range f.Nodes {
		if peer == n {
			continue
		}
		from, to := peer.Addr.Addr(), n.Addr.Addr()
		fmt.Fprintf(&in, "-A WEAVE-IPSEC-IN -s %s -d %s -p esp -m esp --espspi %#x -j WEAVE-IPSEC-IN-MARK\n", from, to, spi+peer.Index)
		fmt.Fprintf(&drop, "-A WEAVE-IPSEC-IN -s %s -d %s -p udp --dport %d -m mark ! --mark %s -j DROP\n", from, to, port, bit)
		fmt.Fprintf(&out, "-A WEAVE-IPSEC-OUT -s %s -d %s -p udp --dport %d -j WEAVE-IPSEC-OUT-MARK\n", to, from, port)
	}
	return fmt.Sprintf(`*mangle
:WEAVE-IPSEC-IN - [0:0]
:WEAVE-IPSEC-IN-MARK - [0:0]
:WEAVE-IPSEC-OUT - [0:0]
:WEAVE-IPSEC-OUT-MARK - [0:0]
-A INPUT -j WEAVE-IPSEC-IN
-A WEAVE-IPSEC-IN-MARK -j MARK --set-xmark %[1]s
-A OUTPUT -j WEAVE-IPSEC-OUT
-A WEAVE-IPSEC-OUT-MARK -j MARK --set-xmark %[1]s
%[2]s%[3]sCOMMIT
*filter
:WEAVE-IPSEC-IN - [0:0]
-A INPUT -j WEAVE-IPSEC-IN
-A OUTPUT ! -p esp -m policy --dir out --pol none -m mark --mark %[1]s -j DROP
%[4]sCOMMIT
`, bit, in.String(), out.String(), drop.String())
}
