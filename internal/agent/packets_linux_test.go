package agent

import (
	"bytes"
	"crypto/rand"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// A sniffer on the loopback sees what the agent itself sends, and counts it
// before it answers.
func TestSniff(t *testing.T) {
	if fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		t.Skipf("packet sockets: %v; run it as root", err)
	} else {
		unix.Close(fd)
	}
	c, ctx := start(t, here{t}, sysmon.ScopePod), t.Context()
	if _, err := c.ReadSniffer(ctx); err == nil || !strings.Contains(err.Error(), "no sniffer runs") {
		t.Errorf("nothing was started: %v", err)
	}
	if err := c.Sniff(ctx, Sniff{Device: "no-such-device"}); err == nil || !strings.Contains(err.Error(), "no-such-device") {
		t.Errorf("a device that is not there: %v", err)
	}
	if err := c.Sniff(ctx, Sniff{Device: "lo", Markers: map[string][]byte{"short": []byte("short")}}); err == nil || !strings.Contains(err.Error(), "want 16 or more") {
		t.Errorf("a short marker: %v", err)
	}
	marker, other := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(marker)
	_, _ = rand.Read(other)
	if err := c.Sniff(ctx, Sniff{Device: "lo", Markers: map[string][]byte{"sent": marker, "kept": other}, LargeFrom: 200}); err != nil {
		t.Fatal(err)
	}
	if err := c.Sniff(ctx, Sniff{Device: "lo"}); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second sniffer: %v", err)
	}
	port, err := c.Echo(ctx, loopback)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Probe(ctx, Probe{Target: netip.AddrPortFrom(loopback, port), Size: 200, Payload: marker})
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	seen, err := c.ReadSniffer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// There and back, each once on its way out and once on its way in.
	if m := seen.Marked["sent"]; m["tcp"] != 4 || m["udp"] != 4 || len(m) != 2 {
		t.Errorf("the marker was seen in %v, want 4 of tcp and 4 of udp", m)
	}
	// Others may use the loopback meanwhile; TestSniffedTakes counts exactly.
	if seen.Large["tcp"] < 4 || seen.Large["udp"] < 4 {
		t.Errorf("large were %v, want at least what holds the marker", seen.Large)
	}
	if seen.Marked["kept"] != nil || seen.Packets < 8 || seen.Largest < 228 || seen.Bytes < 8*200 {
		t.Errorf("%+v", seen)
	}
	r, err = c.Probe(ctx, Probe{Target: netip.AddrPortFrom(loopback, port), Size: 200, Payload: other, Protocol: "udp"})
	if err != nil || r.Err() != nil || r.TCP.Kind != Unasked {
		t.Errorf("UDP alone: %+v, %v", r, err)
	}
	if seen, err = c.StopSniffing(ctx); err != nil || seen.Marked["kept"]["udp"] != 4 || seen.Marked["kept"]["tcp"] != 0 {
		t.Errorf("UDP alone: %v, %v", seen.Marked["kept"], err)
	}
	if _, err := c.StopSniffing(ctx); err == nil {
		t.Error("a sniffer was stopped twice")
	}
	if err := c.Sniff(ctx, Sniff{Device: "lo"}); err != nil { // left to the agent's end
		t.Error(err)
	}
}

// What a sniffer missed is said, and since when.
func TestMissed(t *testing.T) {
	before, now := Sniffed{Dropped: 3}, Sniffed{Dropped: 4}
	if err := before.CheckDrops(before); err != nil {
		t.Error(err)
	}
	if err := now.CheckDrops(before); err == nil || !strings.Contains(err.Error(), "missed 1 packet;") {
		t.Errorf("error %v", err)
	}
}

func TestCrosses(t *testing.T) {
	c, ctx := start(t, here{t}, sysmon.ScopePod), t.Context()
	port, err := c.Echo(ctx, loopback)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(loopback, port)
	if ok, err := c.Crosses(ctx, nil, SizeProbe{Target: at, Size: 1500}); err != nil || !ok {
		t.Errorf("crosses %v, %v", ok, err)
	}
	at = netip.AddrPortFrom(loopback, 1)
	if _, err := c.Crosses(ctx, nil, SizeProbe{Target: at, Size: 1500}); err == nil || !strings.Contains(err.Error(), "1500 bytes to 127.0.0.1:1: refused") {
		t.Errorf("nobody there: %v", err)
	}
	if ok, err := c.Crosses(ctx, c, SizeProbe{Target: at, Size: 1500}); err == nil || !strings.Contains(err.Error(), "no sniffer runs") {
		t.Errorf("nobody watches: %v, %v", ok, err)
	}
}

func TestWhole(t *testing.T) {
	var e echoes
	defer e.close()
	at, err := e.listen(netip.AddrPortFrom(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	mtu := 65536 // of the loopback
	if b, err := os.ReadFile("/sys/class/net/lo/mtu"); err == nil && !bytes.Equal(bytes.TrimSpace(b), []byte("65536")) {
		t.Skipf("the loopback's MTU is %s, not the usual 65536: ip link set lo mtu 65536", bytes.TrimSpace(b))
	}
	for size, want := range map[int]Kind{41: OK, 1500: OK, mtu - 1: OK} {
		w := SizeProbe{Target: at, Size: size}
		if err := w.complete(); err != nil {
			t.Fatal(err)
		}
		if a, err := probeSize(t.Context(), w); err != nil || a.Kind != want {
			t.Errorf("size %d: %+v, %v, want %s", size, a, err, want)
		}
	}
	e.close()
	w := SizeProbe{Target: at, Size: 100, Timeout: 10 * time.Millisecond, Tries: 1}
	if a, err := probeSize(t.Context(), w); err != nil || a.Kind != Refused {
		t.Errorf("nobody there: %+v, %v", a, err)
	}
	for _, bad := range []SizeProbe{{}, {Target: at, Size: 40}, {Target: at, Size: 65536}, {Target: at, Size: 100, Tries: 11}} {
		if bad.complete() == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestSegments(t *testing.T) {
	var e echoes
	defer e.close()
	at, err := e.listen(netip.AddrPortFrom(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	p := TCPProbe{Target: at, Bytes: 1 << 20}
	if err := p.complete(); err != nil {
		t.Fatal(err)
	}
	s, err := segments(t.Context(), p)
	if err != nil || s.Kind != OK || s.FirstMSS < 500 || s.LastMSS < 500 || s.FirstPacket-s.FirstMSS < 40 || s.FirstPacket-s.FirstMSS > 52 {
		t.Errorf("%+v, %v", s, err)
	}
	e.close()
	if s, err := segments(t.Context(), p); err != nil || s.Kind != Refused {
		t.Errorf("nobody there: %+v, %v", s, err)
	}
}
