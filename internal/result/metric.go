package result

import (
	"slices"
	"sync"
)

// Names of metrics that programs ask for; the catalogue below says what each is.
const (
	Goodput              = "goodput"
	LoadGoodput          = "load_goodput"
	Rate                 = "rate"
	Retransmits          = "retransmits"
	RetransmitsPerGiB    = "retransmits_per_gib"
	Loss                 = "loss"
	Jitter               = "jitter"
	TimeToFirstByte      = "time_to_first_byte"
	Transfers            = "transfers"
	Packets              = "packets"
	BytesPerPacket       = "bytes_per_packet"
	LatencyMean          = "latency_mean"
	NetworkTimeP50       = "network_time_p50"
	NetworkTimeP99       = "network_time_p99"
	LatencyP50           = "latency_p50"
	LatencyP99           = "latency_p99"
	LatencyP99_9         = "latency_p99_9"
	CPUClient            = "cpu_client"
	CPUServer            = "cpu_server"
	CPUClientSteal       = "cpu_client_steal"
	CPUServerSteal       = "cpu_server_steal"
	CPUForeign           = "cpu_foreign"
	CPUStanding          = "cpu_standing"
	CPUPerGbit           = "cpu_per_gbit"
	CPUPerGbitPublished  = "cpu_per_gbit_published"
	CPUPerGbitUserSystem = "cpu_per_gbit_user_system"
	CPUPerRequest        = "cpu_per_request"
	CPUPerPacket         = "cpu_per_packet"
	MemoryUsed           = "memory_used"
	MemoryOverhead       = "memory_overhead"
	ContextSwitches      = "context_switches"
	SetupTime            = "setup_time"
	InstallSteps         = "install_steps"
	InstallObjects       = "install_objects"
	InstallImages        = "install_images"
	InstallImageSize     = "install_image_size"
	ServiceSyncTime      = "service_sync_time"
	TCPChecksumErrors    = "tcp_checksum_errors"
	UDPChecksumErrors    = "udp_checksum_errors"
)

// The directions of Metric.Better.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Metric describes one measured quantity. Its row in the catalogue is all that
// the rest of the program knows about it.
type Metric struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`   // bit/s, s, 1/s, bytes, CPU-s/s, CPU-s/Gbit, 1 (a ratio), count
	Better string `json:"better"` // Higher or Lower
	Help   string `json:"help"`

	Label   string  `json:"-"` // the metric's name for people; "": layout.MetricLabel makes it from Name
	Roles   Role    `json:"-"`
	Column  int     `json:"-"` // position among the columns of a step's table; 0: in no table
	Aspect  Aspect  `json:"-"` // the property of a step that the metric measures
	StandIn int     `json:"-"` // a step's metric with the smallest StandIn represents the aspect; 0: the aspect's main metric
	Per     string  `json:"-"` // the metric that this one was divided by
	Clock   string  `json:"-"` // of a latency: latency, service_time, …
	Percent float64 `json:"-"` // of a percentile: 50, 99.9; 0 for a mean, a maximum and no latency
}

// Role says what a metric is used for. A metric has several.
type Role uint

// The roles.
const (
	Ranked        Role = 1 << iota // a higher or lower value is better, and the contender causes it
	MayBeZero                      // 0 can be a true value: no loss, a CPU mode that did not occur
	MayBeNegative                  // a difference to the baseline
	Expected                       // a step has the metric for every contender or for none
	Headline                       // represents its step in findings about drift and the baseline
	Steady                         // rounds should agree; two groups of rounds, or wide scatter, are findings
	Tuned                          // decides whether a tuning helps
	RatioMissed                    // a report must say so if a ratio is missing because the baseline's value is 0
	CPUTime                        // comes from the kernel's CPU accounting
	NotBaseline                    // the baseline has no value: the metric is a difference to the baseline, or is about installing
	Derived                        // the analysis computes the metric from others; a sample's own value is ignored
)

// Has says that the metric has the role.
func (m Metric) Has(r Role) bool { return m.Roles&r != 0 }

// Aspect is a property of a step. Two runs are compared by one metric of each aspect.
type Aspect int

// The aspects. A metric of details has no aspect.
const (
	Traffic Aspect = iota + 1 // how much was transferred
	Typical                   // how long a request usually takes
	Tail                      // how long the slowest requests take
	Cost                      // CPU time per unit of traffic
)

// The clocks of a latency, and what each measures. byGenerator says that the clock
// contains the load generator's own delay, so that a generator without enough CPU spoils
// the figures. send_lag measures that delay and is not spoiled by it.
var clocks = []struct {
	name, help  string
	byGenerator bool
}{
	{"latency", "from the intended send time to the response read: what an application feels", true},
	{"service_time", "from the actual send to the response read", true},
	{"network_time", "from the actual send to the kernel's receive timestamp: the network and the server without the client's own wake-up", false},
	{"send_lag", "from the intended to the actual send: the load generator's own delay", false},
	{"connect_time", "from connect(2) to the connection made, where each request has its own", true},
}

// Percentile is a percentile and its name in the names of metrics.
type Percentile struct {
	Name  string  // p99_9
	Value float64 // 99.9
}

// Percentiles lists the percentiles in reports. One with too few values beyond it is
// left out.
var Percentiles = []Percentile{
	{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99_5", 99.5},
	{"p99_9", 99.9}, {"p99_99", 99.99}, {"p99_999", 99.999},
}

// EnoughFor says whether count values are enough for the percentile (0 to 100): at least
// ten of them lie beyond it.
func EnoughFor(percentile float64, count int64) bool {
	return float64(count)*(100-percentile)/100 >= 10-1e-6 // the share of 99.9 is not exact in binary
}

// CPUModes are the modes of /proc/stat that are recorded, idle left out.
var CPUModes = []string{"user", "nice", "system", "irq", "softirq", "iowait", "steal"}

// CPUMode returns the name of the metric for a CPU mode of a side: client or server.
func CPUMode(side, mode string) string { return "cpu_" + side + "_" + mode }

// Metrics is the catalogue, in the order of listings.
func Metrics() []Metric { return slices.Clone(catalogue().list) }

type metricCatalogue struct {
	list   []Metric
	byName map[string]Metric
}

// catalogue is built once: LookupMetric is called for every figure.
var catalogue = sync.OnceValue(func() metricCatalogue {
	c := metricCatalogue{slices.Concat(trafficMetrics, latencyMetrics(), cpuMetrics(), costMetrics), map[string]Metric{}}
	for _, m := range c.list {
		c.byName[m.Name] = m
	}
	return c
})

var trafficMetrics = []Metric{
	{Name: Goodput, Unit: "bit/s", Better: Higher, Help: "application bits received per second",
		Roles: Ranked | Expected | Headline | Steady | Tuned | RatioMissed, Column: 1, Aspect: Traffic},
	{Name: LoadGoodput, Label: "Goodput beside requests", Unit: "bit/s", Better: Higher, Help: "application bits received per second by the bulk connections that send beside requests",
		Roles: Ranked | MayBeZero, Column: 4}, // behind the round trips that it is beside
	{Name: Rate, Unit: "1/s", Better: Higher, Help: "requests or messages completed per second",
		Roles: Ranked | Expected | Tuned | RatioMissed, Column: 16, Aspect: Traffic, StandIn: 1},
	{Name: Retransmits, Unit: "count", Better: Lower, Help: "TCP segments sent again during the window: a faster contender has more chances to; see retransmits_per_gib",
		Roles: MayBeZero},
	{Name: RetransmitsPerGiB, Label: "Retransmits per GiB", Unit: "1/GiB", Better: Lower, Help: "TCP segments sent again by GiB that was received",
		Roles: Ranked | MayBeZero | RatioMissed | Derived, Column: 14},
	{Name: Loss, Label: "Loss (0–1)", Unit: "1", Better: Lower, Help: "share of datagrams sent that did not arrive, 0 to 1",
		Roles: Ranked | MayBeZero | Tuned | RatioMissed, Column: 9},
	{Name: Jitter, Unit: "s", Better: Lower, Help: "RFC 1889 smoothed interarrival jitter as iperf3 reports it",
		Roles: Ranked | MayBeZero | RatioMissed, Column: 15},
	{Name: TimeToFirstByte, Unit: "s", Better: Lower, Help: "from the start of a transfer, connection, handshakes and login included, to the first byte of the answer; median over the transfers of the window (scp: how long a file of one byte takes)",
		Roles: Ranked | MayBeZero, Column: 8},
	{Name: Transfers, Unit: "count", Better: Higher, Help: "whole files moved in the window", Roles: MayBeZero},
	{Name: Packets, Unit: "1/s", Better: Higher, Help: "packets on the client node's uplink per second, both directions; in the lab a segmentation-offload frame counts as one, unless run with --offload wire",
		Roles: MayBeZero, Column: 17},
	{Name: BytesPerPacket, Unit: "bytes", Better: Lower, Help: "mean size of those packets, Ethernet header included, acknowledgements too: over the MTU only with segmentation offload",
		Roles: MayBeZero},
}

// latencyMetrics are the mean, percentiles and maximum of every clock.
func latencyMetrics() []Metric {
	var list []Metric
	for _, c := range clocks {
		roles := Ranked
		if c.name == "send_lag" { // the load generator's own delay is no contender's doing
			roles = MayBeZero
		}
		row := func(suffix, remark string, percent float64) {
			list = append(list, Metric{Name: c.name + "_" + suffix, Unit: "s", Better: Lower, Help: c.help + remark,
				Roles: roles, Clock: c.name, Percent: percent})
		}
		row("mean", " (mean)", 0)
		for _, p := range Percentiles {
			row(p.Name, "", p.Value)
		}
		row("max", " (maximum)", 0)
	}
	for i := range list {
		m := &list[i]
		switch m.Name {
		case LatencyMean:
			m.Roles |= Expected | Headline | Steady | RatioMissed
			m.Column, m.Aspect, m.StandIn = 7, Typical, 3
		case LatencyP50:
			m.Roles |= Headline | Steady | Tuned | RatioMissed
			m.Column, m.Aspect, m.StandIn = 4, Typical, 1
		case LatencyP99:
			m.Roles |= Headline | Tuned | RatioMissed
			m.Column, m.Aspect, m.StandIn = 5, Tail, 1
		case LatencyP99_9:
			m.Column = 6
		// The network and the server without the client's own wake-up, which on a busy
		// machine is most of the latency.
		case NetworkTimeP50:
			m.Roles |= Headline | Steady | Tuned | RatioMissed
			m.Column, m.Aspect = 2, Typical
		case NetworkTimeP99:
			m.Roles |= Headline | Tuned | RatioMissed
			m.Column, m.Aspect = 3, Tail
		case "service_time_p50":
			m.Aspect, m.StandIn = Typical, 2
		case "service_time_p99":
			m.Aspect, m.StandIn = Tail, 2
		}
	}
	return list
}

// cpuMetrics are the CPUs of both nodes, whole and by mode.
func cpuMetrics() []Metric {
	var list []Metric
	for _, side := range []string{"client", "server"} {
		list = append(list, Metric{Name: "cpu_" + side, Unit: "CPU-s/s", Better: Lower, Roles: Ranked | MayBeZero | CPUTime,
			Help: "busy CPUs of the " + side + "'s node: elapsed time less idle, iowait and steal (/proc/stat)"})
		for _, mode := range CPUModes {
			roles := Ranked | MayBeZero | CPUTime
			if mode == "steal" || mode == "iowait" { // not caused by the contender
				roles &^= Ranked
			}
			list = append(list, Metric{Name: CPUMode(side, mode), Unit: "CPU-s/s", Better: Lower, Roles: roles,
				Help: "CPUs of the " + side + "'s node in mode " + mode})
		}
	}
	return list
}

var costMetrics = []Metric{
	{Name: CPUForeign, Unit: "CPU-s/s", Better: Lower, Help: "user time of processes that are not the run's, on all CPUs of the machine; cpu_client and cpu_server contain it; cpu_per_gbit and cpu_per_request do not, if all CPUs of the machine were measured",
		Roles: MayBeZero | CPUTime},
	{Name: CPUStanding, Unit: "CPU-s/s", Better: Lower, Help: "CPU time of the contender's own processes, recorders included, while others had their slices",
		Roles: MayBeZero},
	{Name: CPUPerGbit, Label: "CPU per Gbit/s", Unit: "CPU-s/Gbit", Better: Lower, Help: "busy CPU of client and server, softirq and irq included, by goodput",
		Roles: Ranked | Expected | Headline | Tuned | RatioMissed | CPUTime, Column: 10, Aspect: Cost, Per: Goodput},
	{Name: CPUPerGbitPublished, Label: "CPU per Gbit/s (2024 formula)", Unit: "CPU-s/Gbit", Better: Lower, Help: "the 2024 study's formula: all modes but idle, mean of client and server, by goodput",
		Roles: Ranked | MayBeZero | CPUTime, Per: Goodput},
	// Not ranked: the metric leaves softirq out, and the datapath decides how much that is.
	{Name: CPUPerGbitUserSystem, Label: "CPU per Gbit/s (user + system)", Unit: "CPU-s/Gbit", Better: Lower, Help: "user and system only, mean of client and server: what the 2024 study's summary files hold; leaves softirq out",
		Roles: MayBeZero | CPUTime, Per: Goodput},
	{Name: CPUPerRequest, Label: "CPU per request", Unit: "s", Better: Lower, Help: "busy CPU of client and server, softirq and irq included, by request",
		Roles: Ranked | Expected | Headline | RatioMissed | CPUTime, Column: 11, Per: Rate},
	// Not ranked: smaller packets each take less CPU time, but all of them together may take more.
	{Name: CPUPerPacket, Unit: "s", Better: Lower, Help: "busy CPU of client and server, softirq and irq included, by packet on the client node's uplink",
		Roles: MayBeZero | CPUTime, Per: Packets},
	// Memory is not ranked: if all nodes share one machine, other programs there change the
	// value more than a contender does.
	{Name: MemoryUsed, Unit: "bytes", Better: Lower, Help: "memory of the nodes without buffers and cache, mean over the window (/proc/meminfo)",
		Roles: Expected | RatioMissed, Column: 18},
	{Name: MemoryOverhead, Unit: "bytes", Better: Lower, Help: "memory used when idle, over the baseline's in the same round",
		Roles: MayBeZero | MayBeNegative | NotBaseline | Derived, Column: 12},
	{Name: ContextSwitches, Unit: "1/s", Better: Lower, Help: "context switches per second (/proc/stat ctxt)", Roles: MayBeZero},
	{Name: TCPChecksumErrors, Unit: "count", Better: Lower, Help: "TCP segments that client's and server's nodes received with a wrong checksum (/proc/net/snmp Tcp InCsumErrors)", Roles: MayBeZero},
	{Name: UDPChecksumErrors, Unit: "count", Better: Lower, Help: "UDP datagrams that client's and server's nodes received with a wrong checksum, IPv4 (/proc/net/snmp Udp InCsumErrors)", Roles: MayBeZero},
	{Name: SetupTime, Label: "Set-up time", Unit: "s", Better: Lower, Help: "time to bring the contender up until its pods reach each other",
		Roles: Ranked | RatioMissed, Column: 13},
	{Name: InstallSteps, Unit: "count", Better: Lower, Help: "steps of the recipe by which run --install put the contender on the cluster", Roles: MayBeZero | NotBaseline, Column: 21},
	{Name: InstallObjects, Unit: "count", Better: Lower, Help: "Kubernetes objects that those steps make, without what an operator makes of them", Roles: MayBeZero | NotBaseline, Column: 20},
	{Name: InstallImages, Unit: "count", Better: Lower, Help: "different images of the pods that came with it", Roles: MayBeZero | NotBaseline, Column: 22},
	{Name: InstallImageSize, Unit: "bytes", Better: Lower, Help: "size of those images as the kubelets know it, each once for the cluster", Roles: MayBeZero | NotBaseline, Column: 19},
	{Name: ServiceSyncTime, Unit: "s", Better: Lower, Help: "time to program all Services on every node, from none", Roles: Ranked | MayBeZero},
}

// LookupMetric finds a metric by name.
func LookupMetric(name string) (Metric, bool) {
	m, ok := catalogue().byName[name]
	return m, ok
}

// WithRole lists the names of the metrics that have the role, in the order of the
// catalogue.
func WithRole(r Role) []string {
	return sortedNames(func(m Metric) bool { return m.Has(r) }, func(Metric) int { return 0 })
}

// Columns lists the metrics of a step's table, the most important first.
func Columns() []string { return ColumnsWhere(func(Metric) bool { return true }) }

// ColumnsWhere lists the Columns for which keep returns true.
func ColumnsWhere(keep func(Metric) bool) []string {
	return sortedNames(func(m Metric) bool { return m.Column > 0 && keep(m) }, func(m Metric) int { return m.Column })
}

// OfAspect lists the metrics of the aspect: the main metric first, then the others in the
// order in which they stand in for it.
func OfAspect(a Aspect) []string {
	return sortedNames(func(m Metric) bool { return m.Aspect == a }, func(m Metric) int { return m.StandIn })
}

// MainMetricOf returns the metric that represents the aspect where has says which metrics there
// are, e.g. at a step: the first of OfAspect. It returns "" if there is none.
func MainMetricOf(a Aspect, has func(metric string) bool) string {
	names := OfAspect(a)
	if i := slices.IndexFunc(names, has); i >= 0 {
		return names[i]
	}
	return ""
}

// MainMetrics lists the main metric of each aspect.
func MainMetrics(aspects ...Aspect) []string {
	var names []string
	for _, a := range aspects {
		names = append(names, OfAspect(a)[0])
	}
	return names
}

// Clocks lists the clocks of the metrics of the aspect Typical.
func Clocks() []string {
	var names []string
	for _, m := range catalogue().list {
		if m.Aspect == Typical && m.Clock != "" && !slices.Contains(names, m.Clock) {
			names = append(names, m.Clock)
		}
	}
	return names
}

// DividedBy lists the metrics that are quotients with the named metric as divisor, in the
// order of the catalogue.
func DividedBy(name string) []string {
	return sortedNames(func(m Metric) bool { return m.Per == name }, func(Metric) int { return 0 })
}

// sortedNames returns the names of the metrics for which keep returns true, the smallest
// key first.
func sortedNames(keep func(Metric) bool, key func(Metric) int) []string {
	list := slices.DeleteFunc(Metrics(), func(m Metric) bool { return !keep(m) })
	slices.SortStableFunc(list, func(a, b Metric) int { return key(a) - key(b) })
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.Name
	}
	return names
}

// IsLatency says whether the metric is a percentile, mean or maximum of a clock.
func IsLatency(name string) bool {
	m, _ := LookupMetric(name)
	return m.Clock != ""
}
