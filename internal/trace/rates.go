package trace

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/cpulist"
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
	energyFamily     = "node_rapl_joules"
)

// least is the shortest interval that a rate is taken over: marks add
// snapshots at any time, and the ticks of /proc/stat are 10 ms long.
const least = sysmon.Interval / 2

// sameNode is the path on which the client's node is the server's too.
const sameNode = "same-node"

// place is a node's recordings: its own first, then its pods'.
type place struct {
	node string
	recs []*sysmon.Recording
}

// nodes makes the traces of client and server.
func nodes(recs []*sysmon.Recording, run *result.Run, s *result.Sample) []analysis.NodeTrace {
	var places []place
	for _, rec := range recs {
		node := rec.Labels["node"]
		i := slices.IndexFunc(places, func(p place) bool { return p.node == node })
		if i < 0 {
			i = len(places)
			places = append(places, place{node: node})
		}
		if _, own := rec.Family(cpuFamily); own {
			places[i].recs = slices.Insert(places[i].recs, 0, rec)
		} else {
			places[i].recs = append(places[i].recs, rec)
		}
	}
	var list []analysis.NodeTrace
	var begin time.Time // of the client's window
	index := 0
	for order, p := range places {
		role := roleOf(p.node, order)
		if role == "" || role == "server" && s.Path == sameNode {
			continue
		}
		own := p.recs[0]
		from, to, elapsed := -1, -1, float64(s.Elapsed)
		switch {
		case s.Slices != nil && len(own.Times) > 0:
			// Its slices lie all over the recording, between those of other contenders.
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
		list = append(list, nodeTrace(role, p.recs, window{from, to, begin, elapsed}, cpusOf(run.Plan.Settings, role)))
	}
	return list
}

func nodeTrace(role string, recs []*sysmon.Recording, w window, cpus []int) analysis.NodeTrace {
	own := recs[0]
	if w.from >= 0 {
		w.begin, w.seconds = own.Times[w.from], own.Times[w.to].Sub(own.Times[w.from]).Seconds()
	} else if n := len(own.Times); w.seconds <= 0 && n > 0 {
		w.seconds = max(0, own.Times[n-1].Sub(w.begin).Seconds())
	}
	at := chosen(own.Times, w.from, w.to)
	t := analysis.NodeTrace{Node: role, Window: w.seconds}
	for _, i := range at[min(1, len(at)):] {
		t.Times = append(t.Times, own.Times[i].Sub(w.begin).Seconds())
	}
	if len(t.Times) == 0 {
		return t
	}
	r := reader{own: own, at: at}
	r.cpu(&t, cpus)
	t.Receive = scaled(r.bytes(receiveFamily), 8)
	t.Transmit = scaled(r.bytes(transmitFamily), 8)
	t.Retransmits = r.everywhere(recs, retransmitFamily)
	t.Memory = r.gauge(memoryFamily)
	t.Power = r.power()
	return t
}

// reader makes rates of one node's recording.
type reader struct {
	own *sysmon.Recording
	at  []int // snapshots that the intervals lie between
}

// rates returns the growth per second of a counter in every interval; NaN where it
// is absent or went back.
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

// mostLoads is up to how many CPUs each has its load in a trace: more lines tell nothing.
const mostLoads = 8

// cpu fills in the modes of the CPUs that count for the node (none: all), what each of
// these was busy, and the busiest of them. Busy is what is neither idle time nor stolen:
// the kernel reads a clock for idle time, and counts the modes by ticks.
func (r *reader) cpu(t *analysis.NodeTrace, cpus []int) {
	family, ok := r.own.Family(cpuFamily)
	if !ok {
		return
	}
	t.CPU = map[string][]float64{}
	busy := map[string][]float64{}                                // by CPU, of the modes
	idle, other := map[string][]float64{}, map[string][]float64{} // by CPU; other is iowait and steal
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
		case "iowait", "steal": // iowait goes back now and then; there it counts as none
			other[cpu] = plus(other[cpu], known(rates))
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
			load[i] = min(max(0, v), 1) // NaN stays
			if load[i] > t.Busiest[i] || math.IsNaN(t.Busiest[i]) {
				t.Busiest[i] = load[i]
			}
		}
		loads[cpu] = load
		t.Busy = plus(t.Busy, load)
	}
	if len(loads) <= mostLoads {
		t.Loads = loads
	}
}

// bytes are those of the node's uplink.
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

// power is that of the CPU packages; their parts are zones within them.
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

// everywhere adds a counter of the node and of its pods, whose connections the
// node's own namespace does not count. The pods' recorders take their
// snapshots at almost the same times.
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

// known returns the rates with 0 for what is not known.
func known(rates []float64) []float64 {
	for i, v := range rates {
		if math.IsNaN(v) {
			rates[i] = 0
		}
	}
	return rates
}

func scaled(list []float64, by float64) []float64 {
	for i := range list {
		list[i] *= by
	}
	return list
}

// cpusOf returns the CPUs that a run's setting "cpus" gives to a role, such as
// client=0-1+4,server=2: in the lab both nodes record the whole machine's. None
// means all.
func cpusOf(settings map[string]string, role string) []int {
	for _, part := range strings.Split(settings["cpus"], ",") {
		if list, found := strings.CutPrefix(part, role+"="); found {
			cpus, _ := cpulist.Parse(strings.ReplaceAll(list, "+", ","), 1<<12)
			return cpus
		}
	}
	return nil
}
