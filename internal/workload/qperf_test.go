package workload

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The fixtures were recorded on loopback with qperf 0.4.11, for one second;
// the plain ones without -uu -e 6, as the study's command prints them.
func TestQperfFixtures(t *testing.T) {
	tests := []struct {
		file string
		q    Qperf
		size int
		want map[string]float64
	}{
		{"tcp_lat-1.txt", TCPLat(), 1, map[string]float64{"latency_mean": 28590.2e-9}},
		{"tcp_lat-1024-plain.txt", TCPLat(), 1024, map[string]float64{"latency_mean": 28.5e-6}},
		{"tcp_lat-4096.txt", TCPLat(), 4096, map[string]float64{"latency_mean": 28723.3e-9}},
		{"udp_lat-1.txt", UDPLat(), 1, map[string]float64{"latency_mean": 25756.6e-9}},
		{"udp_lat-1024-plain.txt", UDPLat(), 1024, map[string]float64{"latency_mean": 17.4e-6}},
		{"udp_lat-4096.txt", UDPLat(), 4096, map[string]float64{"latency_mean": 26767.3e-9}},
		{"tcp_bw-1.txt", TCPBW(), 1, map[string]float64{"goodput": 10019368}},
		{"tcp_bw-1024-plain.txt", TCPBW(), 1024, map[string]float64{"goodput": 7.26e9}},
		{"tcp_bw-4096.txt", TCPBW(), 4096, map[string]float64{"goodput": 18103009280}},
		{"udp_bw-1.txt", UDPBW(), 1, map[string]float64{"goodput": 2250552, "loss": 1 - 2250552.0/2265048}},
		{"udp_bw-1024-plain.txt", UDPBW(), 1024, map[string]float64{"goodput": 2.1e9, "loss": 1 - 2.1/2.15}},
		{"udp_bw-4096.txt", UDPBW(), 4096, map[string]float64{"goodput": 6605471744, "loss": 1 - 6605471744.0/6698958848}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			r, err := parseQperf(bytes.NewReader(fixture(t, "qperf", tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.check(tt.q.test, tt.size, time.Second); err != nil {
				t.Error(err)
			}
			got, err := tt.q.figures(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQperfErrors(t *testing.T) {
	const tail = "\n msg_size = 1 bytes\n time = 1 sec\n"
	tests := []struct {
		name string
		q    Qperf
		in   string
		want string
	}{
		{"empty", TCPLat(), "", "printed no result"},
		{"refused", TCPLat(), string(fixture(t, "qperf", "refused.txt")), "unexpected line"},
		{"only a name", TCPLat(), "tcp_lat:\n", "has no msg_size"},
		{"cut off", TCPLat(), "tcp_lat:\n    latency   =  18", "has no msg_size"},
		{"no figure", TCPLat(), "tcp_lat:" + tail, "has no latency"},
		{"another test", TCPLat(), "udp_lat:\n latency = 18 us" + tail, `ran "udp_lat" instead of tcp_lat`},
		{"another size", TCPLat(), "tcp_lat:\n latency = 18 us\n msg_size = 64 KiB (65,536)\n time = 1 sec", "msg_size is 64 KiB (65,536) instead of 1"},
		{"another time", TCPLat(), "tcp_lat:\n latency = 18 us\n msg_size = 1 bytes\n time = 2 sec", "time is 2 sec instead of 1"},
		{"zero", TCPLat(), "tcp_lat:\n latency = 0 ns" + tail, "nothing was measured"},
		{"not a number", TCPLat(), "tcp_lat:\n latency = nan ns" + tail, "nothing was measured"},
		{"no unit", TCPLat(), "tcp_lat:\n latency = 18" + tail, "no number with one of its units"},
		{"a unit of another kind", TCPLat(), "tcp_lat:\n latency = 18 Mb/sec" + tail, "no number with one of its units"},
		{"a figure twice", TCPLat(), "tcp_lat:\n latency = 18 us\n latency = 19 us" + tail, "latency twice"},
		{"a field before the test", TCPLat(), "latency = 18 us\n", "unexpected line"},
		{"nothing received", UDPBW(), "udp_bw:\n send_bw = 1 Mb/sec\n recv_bw = 0 bits/sec" + tail, "recv_bw is \"0 bits/sec\": nothing was measured"},
		{"nothing sent", UDPBW(), "udp_bw:\n recv_bw = 1 bits/sec" + tail, "has no send_bw"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseQperf(strings.NewReader(tt.in))
			if err == nil {
				err = r.check(tt.q.test, 1, time.Second)
			}
			if err == nil {
				_, err = tt.q.figures(r)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// The study printed bytes where -ub was not given, and long tests in minutes.
func TestQperfUnits(t *testing.T) {
	r := qperfReport{fields: map[string]string{"bw": "1.25 GB/sec", "time": "1 min"}}
	if v, err := r.quantity("bw", bitsPerSecondOf); v != 10e9 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := r.quantity("time", secondsOf); v != 60 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

func FuzzParseQperf(f *testing.F) {
	files, err := filepath.Glob("testdata/qperf/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, file := range files {
		f.Add(string(fixture(f, "qperf", filepath.Base(file))))
	}
	f.Fuzz(func(t *testing.T, in string) {
		r, err := parseQperf(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, q := range []Qperf{TCPLat(), UDPLat(), TCPBW(), UDPBW()} {
			metrics, err := q.figures(r)
			for name, v := range metrics {
				if err == nil && !(v >= 0) {
					t.Errorf("%s of %v", name, v)
				}
			}
		}
	})
}
