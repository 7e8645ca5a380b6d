package importer

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// sound fails if a sample holds what a run may not.
func sound(t *testing.T, s *sample) {
	t.Helper()
	s.judge(40e9, 9000, 50)
	s.dropImpossible()
	for name, v := range s.Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if (s.Verdict == result.Valid) != (len(s.Reasons) == 0) {
		t.Errorf("verdict %s with reasons %v", s.Verdict, s.Reasons)
	}
}

func FuzzIperf3(f *testing.F) {
	f.Add([]byte(iperf3Report(steps2024[1], 9e9, 1, 2, "c", 1706361599)), false)
	f.Add([]byte(iperf3Report(steps2024[4], 9e9, 1, 2, "c", 1706361599)), true)
	f.Add([]byte(`{"start":{},"intervals":[],"end":{},"error":"no"}`), true)
	f.Add([]byte(`{"end":{"sum_received":{"bits_per_second":1e308,"seconds":-1e308,"bytes":1e308}}}`), false)
	f.Fuzz(func(t *testing.T, data []byte, udp bool) {
		report, err := decodeIperf3(data)
		if err != nil {
			return
		}
		s := newSample(result.Key{Contender: "x", Step: "dts", Round: 1}, "tcp_stream", "pod")
		s.required = []string{"goodput"}
		report.apply(&s, "f", 1, udp)
		s.sides = [2]sideFigures{{map[string]float64{"user": 1, "system": 1}, 1e9}, {map[string]float64{"user": 1, "system": 1}, 1e9}}
		s.cost()
		sound(t, &s)
	})
}

func FuzzStatexec(f *testing.F) {
	f.Add([]byte(recording("x", 1, 8, 1)))
	f.Add([]byte("statexec_command_status{a=\"b\"} 1 1704067200000\nstatexec_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 5 1704067201000\n"))
	f.Add([]byte("statexec_disk_read_bytes_total{disk=\"\xff\"} -1 1704067200000\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := decodeStatexec(data)
		if err != nil {
			return
		}
		s := newSample(result.Key{Contender: "x", Step: "dts", Round: 1}, "command", "pod")
		s.Started = time.Unix(1706361599, 0)
		s.side(&source{}, "f", file, 0)
		s.cost()
		sound(t, &s)
		// What the importer made, the run directory must take.
		var b bytes.Buffer
		if err := sysmon.WriteOpenMetrics(&b, s.recordings...); err != nil {
			t.Fatalf("the recording can't be written: %v", err)
		}
		if _, err := sysmon.ReadOpenMetrics(&b); err != nil {
			t.Fatalf("the recording can't be read back: %v", err)
		}
	})
}

func FuzzKeyValues(f *testing.F) {
	f.Add("DTS_BW=1e9\nDTS_RTS=null\nDTS_BW=\n")
	f.Add("=\n\x00=NaN\nA=0x1p4\nB=1_0\n" + strings.Repeat("x", maxLine+1))
	f.Fuzz(func(t *testing.T, text string) {
		vs, _ := parseKeyValues(strings.NewReader(text))
		finiteOrUnknown(t, vs)
	})
}

func FuzzSummary(f *testing.F) {
	f.Add("benchmark_mem_bytes{id=\"x\",run=\"1\",test=\"dts\",role=\"client\"} 1 1704067200000\n")
	f.Add("benchmark_iperf_lost_percent{id=\"x\",run=\"9999999999999999999\",test=\"\\\"\"}  1\nbenchmark_mem_bytes}{\n")
	f.Fuzz(func(t *testing.T, text string) {
		runs, _ := parseSummary(strings.NewReader(text), "x")
		for _, vs := range runs {
			finiteOrUnknown(t, vs)
		}
	})
}

func finiteOrUnknown(t *testing.T, vs values) {
	t.Helper()
	for key, v := range vs {
		if v.known && (math.IsNaN(v.number) || math.IsInf(v.number, 0)) {
			t.Errorf("%q is %v", key, v.number)
		}
	}
}

func FuzzKnb(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"calico-run2","date":"2020-08-30 12:00:00"},"data":{"mtu":"8940","pod2pod":{"tcp":{"bandwidth":9800,"client":{"ram":1},"server":{"ram":1}}}}}`))
	f.Add([]byte(`{"data":{"mtu":{"a":[]},"idle":{"client":{"ram":-1e300}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeKnb(data)
		if err != nil {
			return
		}
		names, rounds := runsOf([]string{knbName(r, "file.json")})
		for _, step := range knbSteps {
			if test := step.of(r); test != nil {
				s := knbSample(r, test, names[0], rounds[0], step.step2024)
				sound(t, &s)
			}
		}
	})
}

func FuzzInfo(f *testing.F) {
	f.Add("Linux x 5.15.0-92-generic #1 SMP\n")
	f.Add("1: lo: <UP> mtu 65536\n2: eth0@if11: <UP> mtu 8950 qdisc noqueue\n")
	f.Add("Ingress\tEgress\nyes\tno\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(io.Reader) (any, error){
			func(r io.Reader) (any, error) { return parseUname(r) },
			func(r io.Reader) (any, error) { return parseInterfaces(r) },
			func(r io.Reader) (any, error) { return parseNetpol(r) },
		} {
			_, _ = parse(strings.NewReader(text))
		}
	})
}
