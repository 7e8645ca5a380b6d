//go:build linux

package tunnel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

func TestESP(t *testing.T) {
	for name, c := range map[string]struct {
		params           wire.Params
		states, policies string
	}{
		"around a tunnel's packets": {
			wire.Params{"port": 6784, "key-bits": 256, "replay-window": 256, "esn": true, "mark": 0x20000},
			`10.10.0.3 10.10.0.2 transport 0x101 mark=0x20000/0x20000
10.10.0.3 10.10.0.4 transport 0x101 mark=0x20000/0x20000
10.10.0.2 10.10.0.3 transport 0x100
10.10.0.4 10.10.0.3 transport 0x102
`,
			`dir out 10.10.0.3/32 10.10.0.2/32 17:6784 by 10.10.0.3 10.10.0.2 0x101 mark=0x20000/0x20000
dir in 10.10.0.2/32 10.10.0.3/32 17:6784 by 10.10.0.2 10.10.0.3 0x0
dir out 10.10.0.3/32 10.10.0.4/32 17:6784 by 10.10.0.3 10.10.0.4 0x101 mark=0x20000/0x20000
dir in 10.10.0.4/32 10.10.0.3/32 17:6784 by 10.10.0.4 10.10.0.3 0x0
`,
		},
		"around pods' packets, one key": {
			wire.Params{"mode": "tunnel", "ends": "tunnels", "shared-key": true, "spi": 3, "mark": 0x3e00, "mark-mask": 0xffffff00, "node-in-mark": true, "mark-in": 0xd00, "output-mark": 0xe00},
			`10.244.1.0 10.244.0.0 tunnel 0x3 mark=0x13e00/0xffffff00 output=0xe00
10.244.1.0 10.244.2.0 tunnel 0x3 mark=0x33e00/0xffffff00 output=0xe00
0.0.0.0 10.244.1.0 tunnel 0x3 mark=0xd00/0xd00
`,
			`dir out 10.244.1.0/24 10.244.0.0/24 0:0 by 10.244.1.0 10.244.0.0 0x3 mark=0x13e00/0xffffff00
dir in 10.244.0.0/24 10.244.1.0/24 0:0 by 0.0.0.0 10.244.1.0 0x0
dir fwd 10.244.0.0/24 10.244.1.0/24 0:0 by 0.0.0.0 10.244.1.0 0x0
dir out 10.244.1.0/24 10.244.2.0/24 0:0 by 10.244.1.0 10.244.2.0 0x3 mark=0x33e00/0xffffff00
dir in 10.244.2.0/24 10.244.1.0/24 0:0 by 0.0.0.0 10.244.1.0 0x0
dir fwd 10.244.2.0/24 10.244.1.0/24 0:0 by 0.0.0.0 10.244.1.0 0x0
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := wiretest.Three()
			e, err := newESP(f, c.params)
			if err != nil {
				t.Fatal(err)
			}
			var states, policies strings.Builder
			for _, s := range e.states(f, f.Nodes[1]) {
				fmt.Fprintf(&states, "%s %s %s %#x%s%s\n", s.Src, s.Dst, s.Mode, s.Spi, markText("mark", s.Mark), markText("output", s.OutputMark))
				if want := c.params.Int("key-bits", 128)/8 + 4; len(s.Aead.Key) != want {
					t.Errorf("a key of %d bytes, want %d", len(s.Aead.Key), want)
				}
			}
			for _, p := range e.policies(f, f.Nodes[1]) {
				fmt.Fprintf(&policies, "%s %s %s %d:%d by %s %s %#x%s\n", p.Dir, p.Src, p.Dst, p.Proto, p.DstPort, p.Tmpls[0].Src, p.Tmpls[0].Dst, p.Tmpls[0].Spi, markText("mark", p.Mark))
			}
			if diff := cmp.Diff(c.states, states.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.policies, policies.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func markText(name string, m *netlink.XfrmMark) string {
	switch {
	case m == nil:
		return ""
	case name == "output":
		return fmt.Sprintf(" output=%#x", m.Value)
	}
	return fmt.Sprintf(" %s=%#x/%#x", name, m.Value, m.Mask)
}

// What one node sends, the other takes: same key, same SPI.
func TestESPEndsAgree(t *testing.T) {
	f := wiretest.Three()
	e, err := newESP(f, wire.Params{"port": 8472})
	if err != nil {
		t.Fatal(err)
	}
	type sa struct{ src, dst, key string }
	find := func(n *wire.Node) map[sa]int {
		found := map[sa]int{}
		for _, s := range e.states(f, n) {
			found[sa{s.Src.String(), s.Dst.String(), string(s.Aead.Key)}] = s.Spi
		}
		return found
	}
	ends := find(f.Nodes[2])
	both := 0
	for s, spi := range find(f.Nodes[0]) {
		if other, ok := ends[s]; ok {
			both++
			if other != spi {
				t.Errorf("%s to %s: SPI %#x at one end, %#x at the other", s.src, s.dst, spi, other)
			}
		}
	}
	if both != 2 {
		t.Errorf("node1 and node3 share %d states, want one each way", both)
	}
}

func TestESPRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		params wire.Params
		want   string
	}{
		"mode":    {wire.Params{"mode": "transprot"}, `did you mean "transport"`},
		"ends":    {wire.Params{"mode": "tunnel", "ends": "node"}, `did you mean "nodes"`},
		"key":     {wire.Params{"port": 1, "key-bits": 512}, "128 or 256"},
		"no port": {nil, "give port"},
		"esn":     {wire.Params{"port": 1, "esn": true}, "replay-window"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newESP(wiretest.Three(), c.params); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
