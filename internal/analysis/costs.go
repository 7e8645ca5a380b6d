package analysis

// Efficiency is what the traffic of one contender cost at one step, over the
// valid rounds.
type Efficiency struct {
	Part      string   `json:"part,omitempty"` // as of a Result
	Contender string   `json:"contender"`
	Kernel    string   `json:"kernel"`
	Underlay  string   `json:"underlay"`
	Step      string   `json:"step"`
	Path      string   `json:"path"`
	Goodput   Estimate `json:"goodput"` // bit/s
	// CPUPerGbit is CPU-seconds per Gbit, client and server together, every
	// mode but idle: softirq, where a pod network does most of its work, is in.
	CPUPerGbit *Estimate `json:"cpu_per_gbit"`
	// Published is by the 2024 study's formula: the mean of client and server
	// instead of their sum, the greatest of the rounds by the best goodput of
	// the rounds; CPU-seconds per Gbit.
	Published *float64 `json:"cpu_per_gbit_published"`
	// UserSystem is user and system only, the mean of client and server: all
	// that some published results hold, and a lower bound, by which nobody is
	// ranked.
	UserSystem *Estimate `json:"cpu_per_gbit_user_system,omitempty"`
	// MemoryOverhead is bytes over the baseline, at this step.
	MemoryOverhead *Estimate `json:"memory_overhead"`
	Frontier       bool      `json:"frontier"` // by medians, no other contender of the step but the baseline has more goodput for less CPU
	Cluster        int       `json:"cluster"`  // from 1; contenders of a number resemble each other; 0: the baseline, or no clusters were found
	Energy         *Energy   `json:"energy"`   // null where it is neither measured nor can be estimated
}

// Estimate is a median with its interval, which is nil with too few rounds.
type Estimate struct {
	Median float64   `json:"median"`
	CI     *Interval `json:"ci"`
}

// Energy is what moving data took.
type Energy struct {
	JoulesPerGB float64 `json:"joules_per_gb"` // decimal gigabyte, client and server
	Measured    bool    `json:"measured"`      // else an estimate
	Basis       string  `json:"basis"`         // where the figure comes from, in words
}

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
