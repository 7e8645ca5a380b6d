//go:build linux

package ovs

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

func TestWeaveFlows(t *testing.T) {
	f := wiretest.Three()
	f.Nodes = f.Nodes[:2]
	f.Pods = []*wire.Pod{{Node: f.Nodes[0], Addr: netip.MustParseAddr("10.244.0.2")}}
	stations := weaveStations(f, &wire.Pod{Node: f.Nodes[1], Addr: netip.MustParseAddr("10.244.1.2")})
	const want = `in_port(1),eth(src=0a:58:0a:f4:00:01,dst=0a:58:0a:f4:01:01) set(tunnel(tun_id=0x2001,src=10.10.0.2,dst=10.10.0.3,ttl=64,flags(df))),2
in_port(1),eth(src=0a:58:0a:f4:00:01,dst=0a:58:0a:f4:01:02) set(tunnel(tun_id=0x2001,src=10.10.0.2,dst=10.10.0.3,ttl=64,flags(df))),2
in_port(1),eth(src=0a:58:0a:f4:00:01,dst=ff:ff:ff:ff:ff:ff) set(tunnel(tun_id=0x2001,src=10.10.0.2,dst=10.10.0.3,ttl=64,flags(df))),2,0
tunnel(tun_id=0x1002,src=10.10.0.3,dst=10.10.0.2,ttl=64/0,flags(+key)),in_port(2),eth(src=0a:58:0a:f4:01:01,dst=0a:58:0a:f4:00:01) 1
tunnel(tun_id=0x1002,src=10.10.0.3,dst=10.10.0.2,ttl=64/0,flags(+key)),in_port(2),eth(src=0a:58:0a:f4:01:01,dst=0a:58:0a:f4:00:02) 1
tunnel(tun_id=0x1002,src=10.10.0.3,dst=10.10.0.2,ttl=64/0,flags(+key)),in_port(2),eth(src=0a:58:0a:f4:01:01,dst=ff:ff:ff:ff:ff:ff) 1,0
`
	got := weaveFlows(f.Nodes[0], stations)
	if lines := strings.SplitAfter(got, "\n"); len(lines) != 13 {
		t.Errorf("%d flows, want 3 from each of 4 stations: %s", len(lines)-1, got)
	} else if diff := cmp.Diff(want, strings.Join(append(lines[:3:3], lines[3:6]...), "")); diff != "" {
		t.Error(diff)
	}
}

func TestWeaveGuard(t *testing.T) {
	f := wiretest.Three()
	f.Nodes = f.Nodes[:2]
	const want = `*mangle
:WEAVE-IPSEC-IN - [0:0]
:WEAVE-IPSEC-IN-MARK - [0:0]
:WEAVE-IPSEC-OUT - [0:0]
:WEAVE-IPSEC-OUT-MARK - [0:0]
-A INPUT -j WEAVE-IPSEC-IN
-A WEAVE-IPSEC-IN-MARK -j MARK --set-xmark 0x20000/0x20000
-A OUTPUT -j WEAVE-IPSEC-OUT
-A WEAVE-IPSEC-OUT-MARK -j MARK --set-xmark 0x20000/0x20000
-A WEAVE-IPSEC-IN -s 10.10.0.3 -d 10.10.0.2 -p esp -m esp --espspi 0x101 -j WEAVE-IPSEC-IN-MARK
-A WEAVE-IPSEC-OUT -s 10.10.0.2 -d 10.10.0.3 -p udp --dport 6784 -j WEAVE-IPSEC-OUT-MARK
COMMIT
*filter
:WEAVE-IPSEC-IN - [0:0]
-A INPUT -j WEAVE-IPSEC-IN
-A OUTPUT ! -p esp -m policy --dir out --pol none -m mark --mark 0x20000/0x20000 -j DROP
-A WEAVE-IPSEC-IN -s 10.10.0.3 -d 10.10.0.2 -p udp --dport 6784 -m mark ! --mark 0x20000/0x20000 -j DROP
COMMIT
`
	if diff := cmp.Diff(want, weaveGuardRules(f, f.Nodes[0], weavePort, wire.DefaultSPI, 0x20000)); diff != "" {
		t.Error(diff)
	}
}
