package analysis

// Efficiency is what the traffic of one contender cost at one step, over the
// valid rounds.
type Efficiency struct {
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
	// that some published results hold, and a lower bound. Where a step has no
	// CPUPerGbit, Frontier and Cluster go by it.
	UserSystem *Estimate `json:"cpu_per_gbit_user_system,omitempty"`
	// MemoryOverhead is bytes over the baseline, at this step.
	MemoryOverhead *Estimate `json:"memory_overhead"`
	Frontier       bool      `json:"frontier"` // no other contender of the step but the baseline has more goodput for less CPU
	Cluster        int       `json:"cluster"`  // from 1; contenders of a number resemble each other; 0: no clusters were found
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
