package trace

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// The families that traces hold.
const (
	cpuFamily        = "node_cpu_seconds"
	memoryFamily     = "node_memory_used_bytes"
	receiveFamily    = "node_network_receive_bytes"
	transmitFamily   = "node_network_transmit_bytes"
	retransmitFamily = "node_netstat_Tcp_RetransSegs"
	trackedFamily    = "node_nf_conntrack_entries" // and …_limit
	quotaFamily      = "container_cpu_cfs_"        // periods and throttled_periods
	energyFamily     = "node_rapl_joules"
)

// minInterval is the shortest interval that a rate is computed over. A mark adds a snapshot at
// any time, and /proc/stat counts in ticks of 10 ms.
const minInterval = sysmon.Interval / 2

// sameNode is the path with client and server on one node.
const sameNode = "same-node"

// nodeRecordings holds a node's recordings: its own first, then those of its pods.
type nodeRecordings struct {
	node string
	recs []*sysmon.Recording
}

// nodes returns the traces of the client's and the server's node.
func nodes(recs []*sysmon.Recording, run *result.Run, s *result.Sample) []analysis.NodeTrace {
	var all []nodeRecordings
	for _, rec := range recs {
		node := rec.Labels["node"]
		i := slices.IndexFunc(all, func(p nodeRecordings) bool { return p.node == node })
		if i < 0 {
			i = len(all)
			all = append(all, nodeRecordings{node: node})
		}
		if _, own := rec.Family(cpuFamily); own {
			all[i].recs = slices.Insert(all[i].recs, 0, rec)
		} else {
			all[i].recs = append(all[i].recs, rec)
		}
	}
	var list []analysis.NodeTrace
	var begin time.Time // begin of the client's window
	index := 0
	for order, p := range all {
		role := roleOf(p.node, order)
		if role == "" || role == "server" && s.Path == sameNode {
			continue
		}
		own := p.recs[0]
		from, to, elapsed := -1, -1, float64(s.Elapsed)
		switch {
		case s.Slices != nil && len(own.Times) > 0:
			// The sample's slices are spread over the recording, between those of others.
			begin, index, elapsed = own.Times[0], -1, 0
		case len(list) == 0:
			if from, to = markedWindow(own.Times, s); from >= 0 {
				begin, index = own.Times[from], from
			} else {
				begin, index = s.Started.Add(run.Plan.Warmup.Duration()), -1
			}
		case index >= 0:
			from, to = besideMark(own.Times, begin, index, s)
		}
		t := nodeTrace(role, p.recs, window{from, to, begin, elapsed}, cpusOf(run.Plan.Settings, role))
		if s.Slices != nil {
			t.Measured = float64(s.Elapsed)
		}
		list = append(list, t)
	}
	return list
}

// nodeTrace returns the trace of a node with the role. recs are its recordings, w is the
// measured window, cpus are the CPUs that count (none: all).
func nodeTrace(role string, recs []*sysmon.Recording, w window, cpus []int) analysis.NodeTrace {
	own := recs[0]
	if w.from >= 0 {
		w.begin, w.seconds = own.Times[w.from], own.Times[w.to].Sub(own.Times[w.from]).Seconds()
	} else if n := len(own.Times); w.seconds <= 0 && n > 0 {
		w.seconds = max(0, own.Times[n-1].Sub(w.begin).Seconds())
	}
	at := chooseSnapshots(own.Times, w.from, w.to)
	t := analysis.NodeTrace{Node: role, Window: w.seconds}
	for _, i := range at[min(1, len(at)):] {
		t.Times = append(t.Times, own.Times[i].Sub(w.begin).Seconds())
	}
	if len(t.Times) == 0 {
		return t
	}
	r := reader{own: own, at: at}
	r.cpu(&t, cpus)
	t.Receive = scale(r.bytes(receiveFamily), 8)
	t.Transmit = scale(r.bytes(transmitFamily), 8)
	t.Retransmits = r.everywhere(recs, retransmitFamily)
	t.Memory = r.gauge(memoryFamily)
	entries, limit := analysis.FiniteOnly(r.gauge(trackedFamily)), analysis.FiniteOnly(r.gauge(trackedFamily+"_limit"))
	if len(entries) > 0 && len(limit) > 0 {
		t.Tracked, t.TrackedLimit = slices.Max(entries), slices.Max(limit)
	}
	for _, rec := range recs[min(1, len(recs)-1):] { // where pods carry the load, the node's is another's
		t.Throttled = max(t.Throttled, throttled(rec, own.Times[at[0]], own.Times[at[len(at)-1]]))
	}
	t.Power = r.power()
	return t
}

// minPeriods is how many periods of a CPU quota tell something: half a second's.
const minPeriods = 5

// throttled returns the share of the periods between two times in which the recording's
// programs used their CPU quota up; 0 without a quota.
func throttled(rec *sysmon.Recording, from, to time.Time) float64 {
	growth := func(family string) float64 {
		f, ok := rec.Family(family)
		if !ok || len(f.Series) != 1 || len(f.Series[0].Values) != len(rec.Times) {
			return 0
		}
		first, last := math.NaN(), math.NaN()
		for i, v := range f.Series[0].Values {
			if rec.Times[i].Before(from.Add(-quotaSlack)) || rec.Times[i].After(to.Add(quotaSlack)) || math.IsNaN(float64(v)) {
				continue
			}
			if last = float64(v); math.IsNaN(first) {
				first = last
			}
		}
		return max(0, last-first) // NaN stays NaN
	}
	periods := growth(quotaFamily + "periods")
	if !(periods >= minPeriods) {
		return 0
	}
	share := growth(quotaFamily+"throttled_periods") / periods
	if !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// quotaSlack is by how much the snapshots of a pod may miss those of its node.
const quotaSlack = 50 * time.Millisecond

// reader computes the rates of one node's recording.
type reader struct {
	own *sysmon.Recording
	at  []int // indexes of the snapshots that begin and end the intervals
}

// rates returns the growth per second of a counter in every interval; NaN if a value is
// absent or the counter went back.
func (r *reader) rates(values []sysmon.Value) []float64 {
	if len(values) != len(r.own.Times) {
		return nil
	}
	list := make([]float64, len(r.at)-1)
	for k := range list {
		a, b := r.at[k], r.at[k+1]
		list[k] = float64(values[b]-values[a]) / r.own.Times[b].Sub(r.own.Times[a]).Seconds()
		if list[k] < 0 {
			list[k] = math.NaN()
		}
	}
	return list
}

// maxLoads is the largest number of CPUs whose single loads are in a trace. More lines could
// not be read in a chart.
const maxLoads = 8

// cpu fills in the CPU modes, the load of each CPU, and the highest load. It counts the given
// CPUs, or all if there is none. Load is the time that is neither idle nor stolen: the
// kernel measures idle time by a clock, but counts the other modes by ticks.
func (r *reader) cpu(t *analysis.NodeTrace, cpus []int) {
	family, ok := r.own.Family(cpuFamily)
	if !ok {
		return
	}
	t.CPU = map[string][]float64{}
	busy := map[string][]float64{}                                // by CPU: sum of the modes
	idle, other := map[string][]float64{}, map[string][]float64{} // by CPU; other: iowait and steal
	for _, series := range family.Series {
		cpu, mode := series.Labels["cpu"], series.Labels["mode"]
		if n, err := strconv.Atoi(cpu); len(cpus) > 0 && (err != nil || !slices.Contains(cpus, n)) {
			continue
		}
		rates := r.rates(series.Values)
		if rates == nil {
			continue
		}
		if mode != "idle" {
			t.CPU[mode] = plus(t.CPU[mode], rates)
		}
		switch mode {
		case "idle":
			idle[cpu] = rates
		case "iowait", "steal": // iowait sometimes goes back; it then counts as 0
			other[cpu] = plus(other[cpu], zeroNaN(rates))
		default:
			busy[cpu] = plus(busy[cpu], rates)
		}
	}
	for cpu, rates := range idle {
		busy[cpu] = make([]float64, len(rates))
		for i, free := range plus(other[cpu], rates) {
			busy[cpu][i] = 1 - free
		}
	}
	t.CPUs = len(busy)
	loads := map[string][]float64{}
	for _, cpu := range slices.Sorted(maps.Keys(busy)) {
		load := busy[cpu]
		if t.Busiest == nil {
			t.Busiest = slices.Repeat([]float64{math.NaN()}, len(load))
		}
		for i, v := range load {
			load[i] = min(max(0, v), 1) // keeps NaN
			if load[i] > t.Busiest[i] || math.IsNaN(t.Busiest[i]) {
				t.Busiest[i] = load[i]
			}
		}
		loads[cpu] = load
		t.Busy = plus(t.Busy, load)
	}
	if len(loads) <= maxLoads {
		t.Loads = loads
	}
}

// bytes returns the rates of a byte counter of the node's uplink.
func (r *reader) bytes(family string) []float64 {
	f, ok := r.own.Family(family)
	if !ok {
		return nil
	}
	device := uplink(r.own)
	for _, series := range f.Series {
		if series.Labels["device"] == device {
			return r.rates(series.Values)
		}
	}
	return nil
}

// power returns the power of all CPU packages, in watts. Zones inside a package are left out,
// because the package contains them.
func (r *reader) power() []float64 {
	f, ok := r.own.Family(energyFamily)
	if !ok {
		return nil
	}
	var sum []float64
	for _, series := range f.Series {
		if zone := series.Labels["zone"]; strings.HasPrefix(zone, "package-") && !strings.Contains(zone, "/") {
			sum = plus(sum, r.rates(series.Values))
		}
	}
	return sum
}

// everywhere returns the rates of a counter, summed over the node and its pods. The node's own
// namespace does not count the pods' connections. The pods' recorders take their snapshots
// at almost the same times.
func (r *reader) everywhere(recs []*sysmon.Recording, family string) []float64 {
	var sum []float64
	for _, rec := range recs {
		f, ok := rec.Family(family)
		if !ok || len(rec.Times) == 0 {
			continue
		}
		for _, series := range f.Series {
			if len(series.Values) != len(rec.Times) {
				continue
			}
			aligned := make([]sysmon.Value, len(r.own.Times))
			j := 0
			for i, t := range r.own.Times {
				for j+1 < len(rec.Times) && rec.Times[j+1].Sub(t).Abs() <= rec.Times[j].Sub(t).Abs() {
					j++
				}
				aligned[i] = series.Values[j]
			}
			sum = plus(sum, r.rates(aligned))
		}
	}
	return sum
}

// gauge returns the value at the end of each interval, summed over its series.
func (r *reader) gauge(family string) []float64 {
	f, ok := r.own.Family(family)
	if !ok {
		return nil
	}
	var sum []float64
	for _, series := range f.Series {
		if len(series.Values) != len(r.own.Times) {
			continue
		}
		list := make([]float64, len(r.at)-1)
		for k := range list {
			list[k] = float64(series.Values[r.at[k+1]])
		}
		sum = plus(sum, list)
	}
	return sum
}

// plus adds the values to the sum, element by element; nil is an empty sum.
func plus(sum, values []float64) []float64 {
	if sum == nil {
		return slices.Clone(values)
	}
	for i := range values {
		sum[i] += values[i]
	}
	return sum
}

// zeroNaN replaces NaN by 0.
func zeroNaN(rates []float64) []float64 {
	for i, v := range rates {
		if math.IsNaN(v) {
			rates[i] = 0
		}
	}
	return rates
}

// scale multiplies the list in place.
func scale(list []float64, by float64) []float64 {
	for i := range list {
		list[i] *= by
	}
	return list
}

// cpusOf returns the CPUs that a run's setting "cpus" gives to a role, for example
// client=0-1+4,server=2. In the lab both nodes record all CPUs of the machine. An empty
// result means all CPUs.
func cpusOf(settings map[string]string, role string) []int {
	for _, part := range strings.Split(settings["cpus"], ",") {
		if list, found := strings.CutPrefix(part, role+"="); found {
			cpus, _ := linux.ParseCPUs(strings.ReplaceAll(list, "+", ","), 1<<12)
			return cpus
		}
	}
	return nil
}
