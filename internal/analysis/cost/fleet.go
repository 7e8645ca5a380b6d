package cost

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// Fleet computes the cost of a fleet from the cost of one step. The CPU time per Gbit
// contains both ends of the traffic, so cores = nodes × Gbit/s of each node × CPU-seconds
// per Gbit. It returns nil if no fleet is asked for.
func Fleet(e *analysis.Evidence, all []analysis.Efficiency) *analysis.Fleet {
	size := e.Opt.Fleet
	if size == nil {
		return nil
	}
	f := &analysis.Fleet{Nodes: size.Nodes, Gbps: size.Gbps, Step: fleetStep(e, all), Rows: []analysis.FleetRow{}}
	traffic := float64(size.Nodes) * size.Gbps // Gbit/s
	for i := range all {
		x := &all[i]
		if x.Step != f.Step || x.CPUPerGbit == nil || e.Lossy(analysis.FigureKey{ComparableSet: analysis.ComparableSet{Kernel: x.Kernel, Underlay: x.Underlay}, Step: x.Step, Metric: result.Goodput}, x.Contender) {
			continue
		}
		row := analysis.FleetRow{
			Contender: x.Contender, Kernel: x.Kernel, Underlay: x.Underlay,
			Cores: times(*x.CPUPerGbit, traffic), Reached: x.Goodput.Median >= size.Gbps*1e9,
		}
		if x.MemoryOverhead != nil && !e.OneMachine() {
			bytes := x.MemoryOverhead.Median * float64(size.Nodes)
			row.Memory = &bytes
		}
		if x.Energy != nil {
			watts := x.Energy.JoulesPerGB * traffic / gbitPerGB
			row.Power = &watts
		}
		if p := e.Opt.Prices; p != nil {
			f.Currency = p.Currency
			month := price(&row, p)
			row.Month = &month
		}
		f.Rows = append(f.Rows, row)
	}
	slices.SortStableFunc(f.Rows, func(a, b analysis.FleetRow) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay), cmp.Compare(a.Cores.Median, b.Cores.Median))
	})
	return f
}

// price returns the price of a month. Less memory than the baseline's costs nothing.
func price(r *analysis.FleetRow, p *analysis.Prices) float64 {
	month := r.Cores.Median * p.CoreMonth
	if r.Memory != nil {
		month += max(0, *r.Memory) / (1 << 30) * p.GiBMonth
	}
	if r.Power != nil {
		month += *r.Power / 1000 * hoursPerMonth * p.KWh
	}
	return month
}

// fleetStep returns the step that was asked for, else the first step with CPU per Gbit of
// TCP, because most traffic of clusters is TCP.
func fleetStep(e *analysis.Evidence, all []analysis.Efficiency) string {
	if e.Opt.Fleet.Step != "" {
		return e.Opt.Fleet.Step
	}
	for _, x := range all {
		if x.CPUPerGbit != nil && !e.IsUDP(x.Step) {
			return x.Step
		}
	}
	return ""
}

func times(x analysis.Estimate, by float64) analysis.Estimate {
	x.Median *= by
	if x.CI != nil {
		x.CI = &analysis.Interval{x.CI[0] * by, x.CI[1] * by}
	}
	return x
}
