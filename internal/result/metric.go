package result

import "strings"

// Metric describes one measured quantity.
type Metric struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`   // bit/s, s, 1/s, bytes, CPU-s/s, CPU-s/Gbit, 1 (a ratio), count
	Better string `json:"better"` // higher or lower
	Help   string `json:"help"`
}

// The clocks of a latency, with what each measures.
var clocks = []struct{ name, help string }{
	{"latency", "from the intended send time to the response read: what an application feels"},
	{"service_time", "from the actual send to the response read"},
	{"network_time", "from the actual send to the kernel's receive timestamp: the network and the server without the client's own wake-up"},
	{"send_lag", "from the intended to the actual send: the load generator's own delay"},
	{"connect_time", "from connect(2) to the connection made, where each request has its own"},
}

// Percentile is a name as metrics carry it and the percentile it stands for.
type Percentile struct {
	Name  string  // p99_9
	Value float64 // 99.9
}

// Percentiles are those that reports carry, where the count allows.
var Percentiles = []Percentile{
	{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99_5", 99.5},
	{"p99_9", 99.9}, {"p99_99", 99.99}, {"p99_999", 99.999},
}

// CPUModes are the modes of /proc/stat that are recorded, idle left out.
var CPUModes = []string{"user", "nice", "system", "irq", "softirq", "iowait", "steal"}

// Metrics is the catalogue, in the order of listings.
func Metrics() []Metric {
	ms := []Metric{
		{"goodput", "bit/s", "higher", "application bits received per second"},
		{"rate", "1/s", "higher", "requests or messages completed per second"},
		{"retransmits", "count", "lower", "TCP segments sent again during the window"},
		{"loss", "1", "lower", "share of datagrams sent that did not arrive, 0 to 1"},
		{"jitter", "s", "lower", "RFC 1889 smoothed interarrival jitter as iperf3 reports it"},
		{"time_to_first_byte", "s", "lower", "from the start of a transfer, connection, handshakes and login included, to the first byte of the answer; median over the transfers of the window (scp: how long a file of one byte takes)"},
		{"transfers", "count", "higher", "whole files moved in the window"},
		{"packets", "1/s", "higher", "packets on the client node's uplink per second, both directions; in the lab a segmentation-offload frame counts as one, unless run with --offload wire"},
		{"bytes_per_packet", "bytes", "lower", "mean size of those packets, Ethernet header included, acknowledgements too: over the MTU only with segmentation offload"},
	}
	for _, c := range clocks {
		ms = append(ms, Metric{c.name + "_mean", "s", "lower", c.help + " (mean)"})
		for _, p := range Percentiles {
			ms = append(ms, Metric{c.name + "_" + p.Name, "s", "lower", c.help})
		}
		ms = append(ms, Metric{c.name + "_max", "s", "lower", c.help + " (maximum)"})
	}
	for _, side := range []string{"client", "server"} {
		ms = append(ms, Metric{"cpu_" + side, "CPU-s/s", "lower", "busy CPUs of the " + side + "'s node: all modes but idle, iowait and steal (/proc/stat)"})
		for _, mode := range CPUModes {
			ms = append(ms, Metric{"cpu_" + side + "_" + mode, "CPU-s/s", "lower", "CPUs of the " + side + "'s node in mode " + mode})
		}
	}
	return append(ms,
		Metric{"cpu_per_gbit", "CPU-s/Gbit", "lower", "busy CPU of client and server, softirq and irq included, by goodput"},
		Metric{"cpu_per_gbit_published", "CPU-s/Gbit", "lower", "the 2024 study's formula: all modes but idle, mean of client and server, by goodput"},
		Metric{"cpu_per_gbit_user_system", "CPU-s/Gbit", "lower", "user and system only, mean of client and server: what the 2024 study's summary files hold; leaves softirq out"},
		Metric{"cpu_per_request", "s", "lower", "busy CPU of client and server, softirq and irq included, by request"},
		Metric{"cpu_per_packet", "s", "lower", "busy CPU of client and server, softirq and irq included, by packet on the client node's uplink"},
		Metric{"memory_used", "bytes", "lower", "memory of the nodes without buffers and cache, mean over the window (/proc/meminfo)"},
		Metric{"memory_overhead", "bytes", "lower", "memory used when idle, over the baseline's in the same round"},
		Metric{"context_switches", "1/s", "lower", "context switches per second (/proc/stat ctxt)"},
		Metric{"setup_time", "s", "lower", "time to bring the contender up until its pods reach each other"},
		Metric{"service_sync_time", "s", "lower", "time to program all Services on every node, from none"},
	)
}

// LookupMetric finds a metric by name.
func LookupMetric(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// IsLatency says that the metric is a percentile, mean or maximum of a clock.
func IsLatency(name string) bool {
	for _, c := range clocks {
		if strings.HasPrefix(name, c.name+"_") {
			return true
		}
	}
	return false
}
