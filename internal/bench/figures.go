package bench

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// side is one node's part of a step: its recording, the window in it, and
// the CPUs that count for it (none: all).
type side struct {
	rec        *sysmon.Recording
	begin, end time.Time
	cpus       []int
}

// deductions are the parts of a recorded window that are no cost of the traffic.
type deductions struct {
	spin    float64 // CPU-seconds per second that the load generator spent waiting for its next send
	foreign float64 // CPU-seconds per second of processes that are not the run's
	pauses  float64 // share of the window that goodput leaves out
}

// gbit returns the traffic in Gbit/s over the whole window, pauses included: the
// recorded CPU time is that of the whole window, too.
func (d deductions) gbit(s *result.Sample) float64 {
	return s.Metrics[result.Goodput] / 1e9 * (1 - d.pauses)
}

// cpuFigures adds the CPU time of each side, by mode, and the CPU time of both sides by
// traffic.
func cpuFigures(s *result.Sample, client, server side, deduct deductions) error {
	var total, published, userAndSystem float64
	for name, sd := range map[string]side{"cpu_client": client, "cpu_server": server} {
		modes, err := sd.modes()
		if err != nil {
			return err
		}
		for mode, rate := range modes {
			s.Metrics[name+"_"+mode] = rate
		}
		s.Metrics[name] = sd.busyTime(modes)
		total += s.Metrics[name]
		published += (addWorking(modes) + modes["iowait"] + modes["steal"]) / 2 // every mode but idle; the study's means are over two nodes
		userAndSystem += (modes["user"] + modes["system"]) / 2                  // what the study's summary files hold
	}
	if gbit := deduct.gbit(s); gbit > 0 {
		s.Metrics[result.CPUPerGbitPublished] = published / gbit
		s.Metrics[result.CPUPerGbitUserSystem] = userAndSystem / gbit
	}
	perTraffic(s, total, deduct)
	return nil
}

// addSharedCPUFigures adds the CPU figures of a step whose two sides ran on the same
// CPUs: the cost of both together by traffic, and the hypervisor's share, which
// counts as the client's.
func addSharedCPUFigures(s *result.Sample, both side, deduct deductions) error {
	modes, err := both.modes()
	if err != nil {
		return err
	}
	s.Metrics[result.CPUClientSteal] = modes["steal"]
	perTraffic(s, both.busyTime(modes), deduct)
	return nil
}

// perTraffic adds the CPU time per Gbit, per request and per packet. used is in
// CPU-seconds per second.
func perTraffic(s *result.Sample, used float64, deduct deductions) {
	if used -= deduct.spin + deduct.foreign; used <= 0 {
		return // too little for the kernel to count
	}
	if gbit := deduct.gbit(s); gbit > 0 {
		s.Metrics[result.CPUPerGbit] = used / gbit
	}
	// CPU beside a bulk flow is the flow's.
	if rate := s.Metrics[result.Rate]; rate > 0 && s.Metrics[result.LoadGoodput] == 0 {
		s.Metrics[result.CPUPerRequest] = used / rate
	}
	if moved := s.Metrics[result.Goodput]+s.Metrics[result.Rate] > 0; moved && s.Metrics[result.Packets] > 0 && crossesUplink(s.Path) {
		s.Metrics[result.CPUPerPacket] = used / s.Metrics[result.Packets]
	}
}

// modes returns CPU-seconds per second in every mode on the side's CPUs.
func (sd side) modes() (map[string]float64, error) {
	modes := map[string]float64{}
	for _, mode := range result.CPUModes {
		rate, err := sd.cpu(mode)
		if err != nil {
			return nil, err
		}
		modes[mode] = rate
	}
	return modes, nil
}

// busyTime returns the CPU-seconds per second in which the side's CPUs worked: elapsed time
// less idle time, iowait, which is idle time too, and steal, which is time of other guests.
// The sum of the other modes would be too low: the kernel counts them by ticks, which miss
// most interrupts on an idle CPU. It reads a clock for idle time where the tick stops on an
// idle CPU (NO_HZ; docs/dev/measurement.md). Where a CPU has no idle time in the window, e.g.
// because it went offline, busy returns that sum.
func (sd side) busyTime(modes map[string]float64) float64 {
	cpus := sd.cpus
	if len(cpus) == 0 {
		cpus = sd.machine()
	}
	if len(cpus) == 0 {
		return addWorking(modes)
	}
	each := sd
	each.cpus = cpus // named CPUs: cpu returns an error if one of them has no idle time
	idle, err := each.cpu("idle")
	if err != nil {
		return addWorking(modes)
	}
	return max(0, float64(len(cpus))-idle-modes["iowait"]-modes["steal"])
}

// addWorking adds up the modes in which the machine works.
func addWorking(m map[string]float64) float64 {
	return m["user"] + m["nice"] + m["system"] + m["irq"] + m["softirq"]
}

// count returns how many CPUs count for the side.
func (sd side) count() int {
	if len(sd.cpus) > 0 {
		return len(sd.cpus)
	}
	return len(sd.machine())
}

// machine returns the CPUs of the side's machine.
func (sd side) machine() []int {
	family, ok := sd.rec.Family("node_cpu_seconds")
	if !ok {
		return nil
	}
	var seen []int
	for _, series := range family.Series {
		if cpu, err := strconv.Atoi(series.Labels["cpu"]); err == nil && !slices.Contains(seen, cpu) {
			seen = append(seen, cpu)
		}
	}
	return seen
}

// cpu returns CPU-seconds per second in that mode on the side's CPUs.
func (sd side) cpu(mode string) (float64, error) {
	if len(sd.cpus) == 0 {
		return sd.rec.Rate("node_cpu_seconds", map[string]string{"mode": mode}, sd.begin, sd.end)
	}
	total := 0.0
	for _, cpu := range sd.cpus {
		rate, err := sd.rec.Rate("node_cpu_seconds", map[string]string{"mode": mode, "cpu": strconv.Itoa(cpu)}, sd.begin, sd.end)
		if err != nil {
			return 0, err
		}
		total += rate
	}
	return total, nil
}

// checksumFigures adds how many segments and datagrams both nodes received with
// a wrong checksum. Kernels before 3.11 do not count these.
func checksumFigures(s *result.Sample, client, server side) {
	for metric, counter := range map[string]string{
		result.TCPChecksumErrors: "node_netstat_Tcp_InCsumErrors", result.UDPChecksumErrors: "node_netstat_Udp_InCsumErrors",
	} {
		atClient, errClient := client.rec.Delta(counter, nil, client.begin, client.end)
		atServer, errServer := server.rec.Delta(counter, nil, server.begin, server.end)
		if errClient == nil && errServer == nil {
			s.Metrics[metric] = atClient + atServer
		}
	}
}

// machineFigures adds memory, context switches and packets on the underlay.
func machineFigures(s *result.Sample, uplink string, client, server side) error {
	memory := 0.0
	for _, sd := range []side{client, server} {
		used, err := sd.rec.Mean("node_memory_used_bytes", nil, sd.begin, sd.end)
		if err != nil {
			return err
		}
		memory += used / 2
	}
	s.Metrics[result.MemoryUsed] = memory
	switches, err := client.rec.Rate("node_context_switches", nil, client.begin, client.end)
	if err != nil {
		return err
	}
	s.Metrics[result.ContextSwitches] = switches
	checksumFigures(s, client, server)
	packets, err := client.uplinkRate(uplink, "packets")
	if err != nil {
		return err
	}
	bytes, err := client.uplinkRate(uplink, "bytes")
	if err != nil {
		return err
	}
	s.Metrics[result.Packets] = packets
	if packets > 0 && crossesUplink(s.Path) {
		s.Metrics[result.BytesPerPacket] = bytes / packets
	}
	return nil
}

// uplinkRate returns the packets or bytes (unit) per second on the uplink, both
// directions together.
func (sd side) uplinkRate(uplink, unit string) (float64, error) {
	total := 0.0
	for _, direction := range []string{"receive", "transmit"} {
		rate, err := sd.rec.Rate("node_network_"+direction+"_"+unit, map[string]string{"device": uplink}, sd.begin, sd.end)
		if err != nil {
			return 0, fmt.Errorf("uplink %s: %w", uplink, err)
		}
		total += rate
	}
	return total, nil
}

// crossesUplink says whether the uplink carries the traffic of that path.
func crossesUplink(path string) bool { return path != arena.PathSameNode }
