package analysis

// Efficiency is the cost of the traffic of one contender at one step, over the valid
// rounds.
type Efficiency struct {
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Step      string   `json:"step"`
	Path      string   `json:"path"`
	Goodput   Estimate `json:"goodput"` // bit/s
	// CPUPerGbit is CPU-seconds per Gbit of client and server together, in every mode
	// that works: with softirq, where a pod network does most of its work.
	CPUPerGbit *Estimate `json:"cpu_per_gbit"`
	// Published is CPU-seconds per Gbit by the 2024 study's formula: the mean of client
	// and server, the largest of all rounds, divided by the best goodput of all rounds.
	Published *float64 `json:"cpu_per_gbit_published"`
	// UserSystem is CPU-seconds per Gbit in the modes user and system only, the mean of
	// client and server. Some published results have only these. It is a lower bound,
	// and contenders are not ranked by it.
	UserSystem *Estimate `json:"cpu_per_gbit_user_system,omitempty"`
	// MemoryOverhead is the memory above the baseline's at this step, bytes.
	MemoryOverhead *Estimate `json:"memory_overhead"`
	Frontier       bool      `json:"frontier"` // by medians, no other contender of the step but the baseline has more goodput for less CPU
	Cluster        int       `json:"cluster"`  // from 1; contenders with the same number resemble each other; 0: the baseline, or no clusters were found
	Energy         *Energy   `json:"energy"`   // null if it was not measured and can't be estimated
}

// Estimate is a median with its interval, which is nil with too few rounds.
type Estimate struct {
	Median float64   `json:"median"`
	CI     *Interval `json:"ci"`
}

// Energy is the energy that moving data took.
type Energy struct {
	JoulesPerGB float64 `json:"joules_per_gb"` // decimal gigabyte, client and server
	Measured    bool    `json:"measured"`      // else an estimate
	Basis       string  `json:"basis"`         // where the figure comes from, in words
}

// FleetSize is a cluster for which costs are computed from the measured ones.
type FleetSize struct {
	Nodes int
	Gbps  float64 // mean traffic that each node sends to pods on other nodes, Gbit/s
	Step  string  // step from which the CPU time per Gbit is taken; "": the first TCP step that has it
}

// Prices are the prices of a fleet's resources; 0 leaves a resource out.
type Prices struct {
	Currency  string  // as reports print it
	CoreMonth float64 // for a core, a month
	GiBMonth  float64 // for a binary gigabyte of memory, a month
	KWh       float64 // for energy
}

// Fleet is what pod networks would cost a fleet.
type Fleet struct {
	Nodes    int        `json:"nodes"`
	Gbps     float64    `json:"gbps"` // sent by each node, Gbit/s
	Step     string     `json:"step"` // step from which the CPU time per Gbit is taken; "" if no step has it
	Currency string     `json:"currency,omitempty"`
	Rows     []FleetRow `json:"rows"` // the least cores first
}

// FleetRow is the cost of one contender.
type FleetRow struct {
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Cores     Estimate `json:"cores"`   // CPUs that the traffic keeps busy, senders and receivers together
	Memory    *float64 `json:"memory"`  // above the baseline's, bytes; null if nodes shared a machine or it was not measured
	Power     *float64 `json:"power"`   // W for the traffic, from the step's energy; null if that is unknown
	Month     *float64 `json:"month"`   // price; null without prices
	Reached   bool     `json:"reached"` // in the run, one pair of pods carried as much traffic as a node of the fleet sends
}
