package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/sysmon"
)

func TestTraffic(t *testing.T) {
	ctx := t.Context()
	client, err := Start(ctx, child{t, "serve"}, self(t), map[string]string{}, sysmon.ScopeNode)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	local := netip.MustParseAddr("127.0.0.1")
	ports, err := client.ServeTraffic(ctx, local)
	if err != nil {
		t.Fatal(err)
	}
	silent := netip.AddrPortFrom(local, 1) // nothing listens
	for exchange, port := range map[string]uint16{"udp": ports.UDP, "tcp": ports.TCP, "connect": ports.TCP} {
		target := netip.AddrPortFrom(local, port)
		got, err := client.RoundTrips(ctx, Trips{Targets: []netip.AddrPort{target, silent}, Exchange: exchange, Rate: 500, Duration: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Target != target || got[0].Planned != 100 || got[0].Answered == 0 || got[0].P50 < 0 {
			t.Errorf("%s: %+v", exchange, got)
		}
		if got[1].Error == "" {
			t.Errorf("%s: the silent port has no error: %+v", exchange, got[1])
		}
		if (got[0].Connect > 0) != (exchange == "connect") {
			t.Errorf("%s: connect time %g", exchange, got[0].Connect)
		}
	}
	for _, protocol := range []string{"tcp", "udp"} {
		sink := netip.AddrPortFrom(local, ports.Sink)
		got, err := client.SendBurst(ctx, Burst{Target: sink, Protocol: protocol, Rate: 50e6, Duration: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if got.Bytes <= 0 || got.Goodput <= 0 {
			t.Errorf("%s: %+v of a burst of 50 Mbit/s at most", protocol, got)
		}
	}
	if _, err := client.SendBurst(ctx, Burst{Target: silent, Protocol: "tcp", Duration: time.Millisecond}); err == nil {
		t.Error("a burst to a silent port gave no error")
	}
	for _, wrong := range []Trips{{Exchange: "udp"}, {Exchange: "icmp", Rate: 1, Duration: time.Second}} {
		if _, err := client.RoundTrips(ctx, wrong); err == nil {
			t.Errorf("no error for %+v", wrong)
		}
	}
}
