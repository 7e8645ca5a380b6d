package bench

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// recording is two seconds of two CPUs, each with these CPU-seconds in the modes; idle
// is what they leave, if it is not given.
func recording(begin time.Time, modes map[string][2]float64) *sysmon.Recording {
	if _, given := modes["idle"]; !given {
		left := [2]float64{2, 2}
		for _, spent := range modes {
			left[0], left[1] = left[0]-spent[0], left[1]-spent[1]
		}
		modes["idle"] = left
	}
	r := &sysmon.Recording{Times: []time.Time{begin, begin.Add(2 * time.Second)}}
	cpu := sysmon.Family{Name: "node_cpu_seconds", Type: "counter"}
	for _, mode := range append([]string{"idle"}, result.CPUModes...) {
		for i, name := range []string{"0", "1"} {
			spent := modes[mode][i]
			cpu.Series = append(cpu.Series, sysmon.Series{
				Labels: map[string]string{"cpu": name, "mode": mode}, Values: []sysmon.Value{100, sysmon.Value(100 + spent)},
			})
		}
	}
	r.Families = []sysmon.Family{cpu}
	return r
}

func TestCPUFigures(t *testing.T) {
	begin := time.Unix(1000, 0)
	rec := recording(begin, map[string][2]float64{
		"user": {0.4, 0.2}, "system": {0.6, 0.8}, "softirq": {0.8, 0.2}, "irq": {0.1, 0}, "nice": {0.1, 0}, "iowait": {0, 0.2}, "steal": {0, 0.4},
	})
	sides := func(a, b []int) (side, side) {
		end := begin.Add(2 * time.Second)
		return side{rec, begin, end, a}, side{rec, begin, end, b}
	}
	near := func(t *testing.T, s *result.Sample, name string, want float64) {
		t.Helper()
		if got, ok := s.Metrics[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	t.Run("apart", func(t *testing.T) {
		s := &result.Sample{Metrics: map[string]float64{"goodput": 10e9, "rate": 1000}}
		client, server := sides([]int{0}, []int{1})
		if err := cpuFigures(s, client, server, deductions{}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "cpu_client", 1)           // (0.4+0.6+0.8+0.1+0.1)/2 s
		near(t, s, "cpu_server", 0.6)         // without iowait and steal
		near(t, s, "cpu_server_steal", 0.2)   //
		near(t, s, "cpu_client_softirq", 0.4) //
		near(t, s, "cpu_per_gbit", 1.6/10)
		near(t, s, "cpu_per_gbit_published", (1+0.9)/2/10) // all but idle, mean of the nodes
		near(t, s, "cpu_per_gbit_user_system", (0.5+0.5)/2/10)
		near(t, s, "cpu_per_request", 1.6/1000)
	})
	t.Run("spinning", func(t *testing.T) {
		s := &result.Sample{Metrics: map[string]float64{"rate": 1000}}
		client, server := sides([]int{0}, []int{1})
		if err := cpuFigures(s, client, server, deductions{spin: 0.3}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "cpu_client", 1)
		near(t, s, "cpu_per_request", 1.3/1000)
	})
	t.Run("pauses", func(t *testing.T) { // CPU and traffic are of the same window
		s := &result.Sample{Metrics: map[string]float64{"goodput": 10e9}}
		client, server := sides([]int{0}, []int{1})
		if err := cpuFigures(s, client, server, deductions{pauses: 0.1}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "goodput", 10e9)
		near(t, s, "cpu_per_gbit", 1.6/9)
		near(t, s, "cpu_per_gbit_user_system", (0.5+0.5)/2/9)
	})
	t.Run("other people's processes", func(t *testing.T) {
		client, server := sides([]int{0}, []int{1})
		for cpus, want := range map[int]float64{1: 0, 2: 0.4} { // where they ran is known only if all CPUs count
			s := &result.Sample{Metrics: map[string]float64{"rate": 1000, result.CPUForeign: 0.4}}
			deduct := deductions{foreign: foreignOn(cpus, client, s)}
			if err := cpuFigures(s, client, server, deduct); err != nil {
				t.Fatal(err)
			}
			near(t, s, "cpu_client", 1)
			near(t, s, "cpu_per_request", (1.6-want)/1000)
		}
	})
	t.Run("shared", func(t *testing.T) {
		s := &result.Sample{Metrics: map[string]float64{"goodput": 10e9}}
		both, _ := sides([]int{0, 1}, nil)
		if err := addSharedCPUFigures(s, both, deductions{}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "cpu_per_gbit", 0.16) // each CPU counted once
		near(t, s, "cpu_client_steal", 0.2)
		for _, name := range []string{"cpu_client", "cpu_server", "cpu_per_gbit_published"} {
			if v, ok := s.Metrics[name]; ok {
				t.Errorf("%s is %v, but the sides can't be told apart", name, v)
			}
		}
	})
	t.Run("all CPUs", func(t *testing.T) {
		s := &result.Sample{Metrics: map[string]float64{}}
		client, server := sides(nil, nil)
		if err := cpuFigures(s, client, server, deductions{}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "cpu_client", 1.6)
		if n := client.count(); n != 2 {
			t.Errorf("%d CPUs, want 2", n)
		}
	})
	t.Run("by the clock", func(t *testing.T) { // the ticks saw little of what was done
		seldom := recording(begin, map[string][2]float64{"softirq": {0.02, 0.01}, "steal": {0, 0.4}, "iowait": {0.1, 0}, "idle": {1.5, 1.4}})
		end := begin.Add(2 * time.Second)
		s := &result.Sample{Metrics: map[string]float64{"rate": 1000}}
		if err := cpuFigures(s, side{seldom, begin, end, []int{0}}, side{seldom, begin, end, []int{1}}, deductions{}); err != nil {
			t.Fatal(err)
		}
		near(t, s, "cpu_client", 0.2) // (2-1.5-0.1)/2 s
		near(t, s, "cpu_server", 0.1) // (2-1.4-0.4)/2 s
		near(t, s, "cpu_client_softirq", 0.01)
		near(t, s, "cpu_per_request", 0.3/1000)
	})
	t.Run("not recorded", func(t *testing.T) {
		client, server := sides([]int{7}, []int{1})
		if err := cpuFigures(&result.Sample{Metrics: map[string]float64{}}, client, server, deductions{}); err == nil {
			t.Error("a CPU that was not recorded counted as idle")
		}
	})
}

func TestChecksumFigures(t *testing.T) {
	begin := time.Unix(1000, 0)
	node := func(tcp, udp float64) side {
		rec := &sysmon.Recording{Times: []time.Time{begin, begin.Add(2 * time.Second)}}
		for name, grown := range map[string]float64{"Tcp": tcp, "Udp": udp} {
			rec.Families = append(rec.Families, sysmon.Family{
				Name: "node_netstat_" + name + "_InCsumErrors", Type: "counter",
				Series: []sysmon.Series{{Values: []sysmon.Value{7, sysmon.Value(7 + grown)}}},
			})
		}
		return side{rec: rec, begin: begin, end: begin.Add(2 * time.Second)}
	}
	s := &result.Sample{Metrics: map[string]float64{}}
	checksumFigures(s, node(1, 0), node(2, 5))
	if want := map[string]float64{"tcp_checksum_errors": 3, "udp_checksum_errors": 5}; !maps.Equal(want, s.Metrics) {
		t.Errorf("got %v, want %v", s.Metrics, want)
	}
	s.Metrics = map[string]float64{}
	checksumFigures(s, node(1, 0), side{rec: &sysmon.Recording{}, begin: begin, end: begin})
	if len(s.Metrics) != 0 {
		t.Errorf("figures without the server's counters: %v", s.Metrics)
	}
}
