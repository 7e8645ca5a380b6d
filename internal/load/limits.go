package load

import "fmt"

// Limit is a reason why a load was not the load that was asked for: the target did not
// answer enough of it, or the load generator or its machine was the limit.
type Limit struct {
	Code string `json:"code"` // rate_short, request_errors, load_generator_late, load_generator_saturated, cpu_steal, cpu_contended
	Text string `json:"text"`
}

// Above these limits the load generator itself influences the figures.
const (
	maxLate  = 0.01 // of the sends
	maxBusy  = 0.95 // of a CPU, by one thread
	maxSteal = 0.01 // of the CPUs' time
	maxWait  = 0.01 // of a thread's time
)

// Beyond these limits the load was not the load that was asked for.
const (
	minAnswered = 0.99 // of the plan; below, the latencies are those of a smaller load
	maxErrors   = 0.01 // of the sends; a failed request gives only a lower bound of its latency
)

// judge sets r.Limits.
func (r *Result) judge() {
	add := func(code, format string, args ...any) {
		r.Limits = append(r.Limits, Limit{code, fmt.Sprintf(format, args...)})
	}
	// Requests counts responses in the drain, too; the rate does not. A stall at the end
	// of the window moves responses into the drain, which is a result and no limit.
	if float64(r.Requests) < minAnswered*float64(r.Planned) {
		add("rate_short", "%d of the %d requests planned in the window were answered (%.1f %%); %d had no answer within a second after the window either",
			r.Requests, r.Planned, 100*share(r.Requests, r.Planned), r.Missed)
	}
	if n := total(r.Errors); float64(n) > maxErrors*float64(r.Sent) {
		add("request_errors", "%d of %d requests failed (%v)", n, r.Sent, r.Errors)
	}
	if late := r.LateFraction(); late > maxLate {
		add("load_generator_late", "%.1f %% of the requests were sent more than %v late by the load generator itself", 100*late, LateAfter)
	}
	if r.GeneratorBusiest > maxBusy {
		add("load_generator_saturated", "a sending thread was busy for %.0f %% of the time; more --threads on more CPUs would send more", 100*r.GeneratorBusiest)
	}
	if r.Steal > maxSteal {
		add("cpu_steal", "the hypervisor took %.1f %% of the time of the load generator's CPUs", 100*r.Steal)
	}
	if r.GeneratorWait > maxWait {
		add("cpu_contended", "a sending thread waited for a CPU for %.1f %% of the time; something else runs there", 100*r.GeneratorWait)
	}
}
