package load

import "fmt"

// Limit is a reason why the figures of a load are not those of the load that
// was asked for: the target did not answer it, or the load generator or its
// machine was the limit.
type Limit struct {
	Code string `json:"code"` // rate_short, request_errors, load_generator_late, load_generator_saturated, cpu_steal, cpu_contended
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
	mostErrors    = 0.01 // of the sends; their latency is only known to be at least their age
)

// judge finds out what limited r.
func (r *Result) judge() {
	add := func(code, format string, args ...any) {
		r.Limits = append(r.Limits, Limit{code, fmt.Sprintf(format, args...)})
	}
	// Not by the rate, which counts what was answered within the window: a
	// stall at its end moves answers into the drain and belongs to the result.
	if float64(r.Requests) < leastAnswered*float64(r.Planned) {
		add("rate_short", "%d of the %d requests planned in the window were answered (%.1f %%); %d had no answer even a while after it",
			r.Requests, r.Planned, 100*share(r.Requests, r.Planned), r.Missed)
	}
	if n := total(r.Errors); float64(n) > mostErrors*float64(r.Sent) {
		add("request_errors", "%d of %d requests failed (%v)", n, r.Sent, r.Errors)
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
