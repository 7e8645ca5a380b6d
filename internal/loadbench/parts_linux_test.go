package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// testBed is a bed with this module's own program.
func testBed(t *testing.T, programs ...string) *bed {
	t.Helper()
	skip := func(reason any) {
		if os.Getenv("CI") == "true" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	if os.Getuid() != 0 {
		skip("namespaces need root: sudo go test ./internal/loadbench")
	}
	for _, p := range programs {
		if err := host.Have(p); err != nil {
			skip(err.Error() + "; run scripts/setup bench-load")
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "cnibench")
	build := exec.Command("go", "build", "-o", program, "github.com/cnibench/cnibench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	b, err := newBed(t.Context(), program, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// Network time is what packet timestamps of the same run say, however busy
// the machine is: both see the same packets. The tolerance is for what lies
// between a send and its packet when the client's CPU is taken away there.
func TestNetworkTimeIsThatOfThePackets(t *testing.T) {
	b := testBed(t, "nginx", "tcpdump", "ip")
	seen, m, err := b.captured(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		name  string
		value float64
	}{{"p50", 50}, {"p90", 90}} {
		packets, got := percentile(seen, q.value).Seconds(), m.Times["network_time_"+q.name]
		t.Logf("%s: %s by the packets, network time %s", q.name, micro(packets), micro(got))
		if math.Abs(got-packets) > 0.25*packets+30e-6 {
			t.Errorf("%s: %s by the packets, network time %s", q.name, micro(packets), micro(got))
		}
	}
	if service := m.Times["service_time_p50"]; service < m.Times["network_time_p50"] {
		t.Errorf("service time p50 %s is below network time", micro(service))
	}
}

// The percentiles that plan and stalls give are those that were measured.
func TestStallIsMeasured(t *testing.T) {
	b := testBed(t, "ip")
	server, err := b.stalling(t.Context(), 200*time.Millisecond, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	const window = 3 * time.Second
	m, err := b.load(t.Context(), "--rate", "2000", "--connections", "64", "--duration", window.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	held, err := stallsOf(server)
	if err != nil || len(held) < 2 {
		t.Fatalf("stalls %v, %v", held, err)
	}
	computed := percentile(waits(m.begin, 2000, window, held), 99).Seconds()
	if got := m.Times["latency_p99"]; math.Abs(got-computed) > 0.05*computed+0.020 {
		t.Errorf("p99 is %s, by plan and stalls %s", milli(got), milli(computed))
	}
}

// What the peers print is understood.
func TestPeersAreRead(t *testing.T) {
	b := testBed(t, "nginx", "ip")
	server, err := b.nginx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range installed() {
		s, err := b.peerSpeed(t.Context(), p, 4, time.Second)
		if err != nil || s.rate <= 0 || s.cpuPerRequest <= 0 {
			t.Errorf("%s: %+v, %v", p.name, s, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}
