package analysis

import (
	"cmp"
	"slices"
)

// FleetSize is a cluster that measured costs are carried over to.
type FleetSize struct {
	Nodes int
	Gbps  float64 // that each node sends to pods on other nodes, on average, Gbit/s
	Step  string  // whose cost by traffic is taken; "" is the first TCP step that has it
}

// Prices are what a fleet's resources cost; 0 leaves a part out.
type Prices struct {
	Currency  string  // as it is printed
	CoreMonth float64 // for a core, a month
	GiBMonth  float64 // for a binary gigabyte of memory, a month
	KWh       float64 // for energy
}

// Fleet is what pod networks would take of a fleet.
type Fleet struct {
	Nodes    int        `json:"nodes"`
	Gbps     float64    `json:"gbps"` // sent by each node, Gbit/s
	Step     string     `json:"step"` // whose cost by traffic is taken; "" where no step has one
	Currency string     `json:"currency,omitempty"`
	Rows     []FleetRow `json:"rows"` // the least cores first
}

// FleetRow is one contender's.
type FleetRow struct {
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Cores     Estimate `json:"cores"`   // CPUs busy with the traffic, senders and receivers together
	Memory    *float64 `json:"memory"`  // bytes over the baseline; null where nodes shared a machine or it was not measured
	Power     *float64 `json:"power"`   // W for the traffic, measured or estimated as the step's energy is; null without
	Month     *float64 `json:"month"`   // price; null without prices
	Reached   bool     `json:"reached"` // one pair of pods carried the traffic of a node
}

// fleet carries the costs of one step over: every bit that a node sends costs
// CPU at both ends, so that nodes × Gbit/s × CPU per Gbit/s are the cores.
func (e *evidence) fleet(all []Efficiency) *Fleet {
	size := e.opt.Fleet
	if size == nil {
		return nil
	}
	f := &Fleet{Nodes: size.Nodes, Gbps: size.Gbps, Step: e.fleetStep(all), Rows: []FleetRow{}}
	traffic := float64(size.Nodes) * size.Gbps // Gbit/s
	for i := range all {
		x := &all[i]
		if x.Step != f.Step || x.CPUPerGbit == nil || e.lossy(place{group{x.Kernel, x.Underlay}, x.Step, "goodput"}, x.Contender) {
			continue
		}
		row := FleetRow{
			Contender: x.Contender, Kernel: x.Kernel, Underlay: x.Underlay,
			Cores: times(*x.CPUPerGbit, traffic), Reached: x.Goodput.Median >= size.Gbps*1e9,
		}
		if x.MemoryOverhead != nil && !e.oneMachine() {
			bytes := x.MemoryOverhead.Median * float64(size.Nodes)
			row.Memory = &bytes
		}
		if x.Energy != nil {
			watts := x.Energy.JoulesPerGB * traffic / gbitPerGB
			row.Power = &watts
		}
		if p := e.opt.Prices; p != nil {
			f.Currency = p.Currency
			month := row.price(p)
			row.Month = &month
		}
		f.Rows = append(f.Rows, row)
	}
	slices.SortStableFunc(f.Rows, func(a, b FleetRow) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay), cmp.Compare(a.Cores.Median, b.Cores.Median))
	})
	return f
}

// price is that of a month; memory that is less than the baseline's costs nothing.
func (r *FleetRow) price(p *Prices) float64 {
	month := r.Cores.Median * p.CoreMonth
	if r.Memory != nil {
		month += max(0, *r.Memory) / (1 << 30) * p.GiBMonth
	}
	if r.Power != nil {
		month += *r.Power / 1000 * hoursPerMonth * p.KWh
	}
	return month
}

// fleetStep is the one asked for, else the first that has CPU by goodput of
// TCP, which carries most of the traffic of clusters.
func (e *evidence) fleetStep(all []Efficiency) string {
	if e.opt.Fleet.Step != "" {
		return e.opt.Fleet.Step
	}
	for _, x := range all {
		if x.CPUPerGbit != nil && !e.isUDP(x.Step) {
			return x.Step
		}
	}
	return ""
}

func times(x Estimate, by float64) Estimate {
	x.Median *= by
	if x.CI != nil {
		x.CI = &Interval{x.CI[0] * by, x.CI[1] * by}
	}
	return x
}
