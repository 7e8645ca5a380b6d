package main

//make:alone 20

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// testBed is a bed with this module's own program.
func testBed(t *testing.T, programs ...string) *bed {
	t.Helper()
	if os.Getuid() != 0 {
		needs.Missing(t, "namespaces need root: sudo go test ./internal/loadbench")
	}
	for _, p := range programs {
		if err := host.Have(p); err != nil {
			needs.Missing(t, err.Error()+"; run scripts/setup bench-load")
		}
	}
	dir := t.TempDir()
	program, err := needs.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBed(t.Context(), program, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// mostly runs what a busy machine may spoil up to three times.
func mostly(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = try(); err == nil {
			return
		}
		t.Log(err)
	}
	t.Error(err)
}

// Network time is what packet timestamps of the same run say, on a busy
// machine too: both see the same packets. The tolerance is for what lies
// between a send and its packet when the client's CPU is taken away there.
func TestNetworkTimeIsThatOfThePackets(t *testing.T) {
	b := testBed(t, "nginx", "tcpdump", "ip")
	mostly(t, func() error {
		seen, m, err := b.capture(t.Context(), 2*time.Second)
		if err != nil {
			return err
		}
		for _, q := range []struct {
			name  string
			value float64
		}{{"p50", 50}, {"p90", 90}} {
			packets, got := percentile(seen, q.value).Seconds(), m.Times["network_time_"+q.name]
			t.Logf("%s: %s by the packets, network time %s", q.name, micro(packets), micro(got))
			if math.Abs(got-packets) > 0.25*packets+30e-6 {
				return fmt.Errorf("%s: %s by the packets, network time %s", q.name, micro(packets), micro(got))
			}
		}
		if service := m.Times["service_time_p50"]; service < m.Times["network_time_p50"] {
			return fmt.Errorf("service time p50 %s is below network time", micro(service))
		}
		return nil
	})
}

// The percentiles that plan and stalls give are those that were measured.
func TestStallIsMeasured(t *testing.T) {
	needs.Slow(t, "measures stalls, on a quiet machine")
	b := testBed(t, "ip")
	mostly(t, func() error {
		server, err := b.startStalling(t.Context(), 200*time.Millisecond, time.Second)
		if err != nil {
			return err
		}
		const window = 3 * time.Second
		m, err := b.load(t.Context(), 0, window, "--rate", "2000", "--connections", "64")
		if err := errors.Join(err, server.stop()); err != nil {
			return err
		}
		held, err := stallsOf(server)
		if err != nil || len(held) < 2 {
			return fmt.Errorf("stalls %v, %v", held, err)
		}
		computed := percentile(waits(m.begin, 2000, window, held), 99).Seconds()
		// Other work on the machine can only add to it.
		if got := m.Times["latency_p99"]; got < 0.97*computed || got > 1.25*computed+0.020 {
			return fmt.Errorf("p99 is %s, by plan and stalls %s", milli(got), milli(computed))
		}
		return nil
	})
}

// What the peers print is understood.
func TestPeersAreRead(t *testing.T) {
	b := testBed(t, "nginx", "ip")
	server, err := b.nginx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listInstalled() {
		s, err := b.peerSpeed(t.Context(), p, 4, time.Second)
		if err != nil || s.rate <= 0 || s.cpuPerRequest <= 0 {
			t.Errorf("%s: %+v, %v", p.name, s, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}
