package load

import "fmt"

// Limit is a reason why a load may have measured itself, or the machine that
// it ran on, instead of the target.
type Limit struct {
	Code string `json:"code"` // load_generator_late, load_generator_saturated, cpu_steal, cpu_contended
	Text string `json:"text"`
}

// Where a load generator begins to be part of what it measures.
const (
	mostLate  = 0.01 // of the sends
	mostBusy  = 0.95 // of a CPU, by one thread
	mostSteal = 0.01 // of the CPUs' time
	mostWait  = 0.01 // of a thread's time
)

// From where on a load was not the one that was asked for.
const (
	leastAnswered = 0.99 // of the plan; with less, the latencies are those of a smaller load
)

// judge finds out what limited r.
func (r *Result) judge() {
	add := func(code, format string, args ...any) {
		r.Limits = append(r.Limits, Limit{code, fmt.Sprintf(format, args...)})
	}
	if late := r.LateFraction(); late > mostLate {
		add("load_generator_late", "%.1f %% of the requests were sent more than %v late by the load generator itself", 100*late, LateAfter)
	}
	if r.GeneratorBusiest > mostBusy {
		add("load_generator_saturated", "a sending thread was busy for %.0f %% of the time; more --threads on more CPUs would send more", 100*r.GeneratorBusiest)
	}
	if r.Steal > mostSteal {
		add("cpu_steal", "the hypervisor took %.1f %% of the time of the load generator's CPUs", 100*r.Steal)
	}
	if r.GeneratorWait > mostWait {
		add("cpu_contended", "a sending thread waited for a CPU for %.1f %% of the time; something else runs there", 100*r.GeneratorWait)
	}
}
