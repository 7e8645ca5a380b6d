// Package sysmon records what a machine does during a step: one file per
// sampler of /proc and /sys, a 1 Hz recorder in memory, and the OpenMetrics
// text that it is written as. It knows no arena and no workload. Next:
// recorder.go, then all.go for the samplers.
package sysmon

import (
	"math"
	"time"
)

// Recording is what one recorder saw at one endpoint: snapshots at Times, and
// for every series a value at each of them.
type Recording struct {
	Labels   map[string]string `json:"labels"` // constant: node, endpoint
	Times    []time.Time       `json:"times"`
	Families []Family          `json:"families"`
	// Faults are the samplers that could not be read, each with its first error. They are
	// not in the OpenMetrics text.
	Faults []string `json:"faults,omitempty"`
	// Missing are the optional samplers whose files this machine lacks.
	Missing []string `json:"missing,omitempty"`
}

// Family is a metric: node_cpu_seconds_total, …, named as node_exporter does.
type Family struct {
	Name   string   `json:"name"` // without the _total that OpenMetrics adds to counters
	Type   string   `json:"type"` // counter or gauge
	Unit   string   `json:"unit,omitempty"`
	Help   string   `json:"help"`
	Series []Series `json:"series"`
}

// Series is the values of one label set, aligned with the recording's Times.
type Series struct {
	Labels map[string]string `json:"labels,omitempty"`
	Values []Value           `json:"values"`
}

// Value is a float that may be absent (NaN, null in JSON), for example before an interface
// appeared, or for a counter that the kernel lacks.
type Value float64

// Absent is an absent Value.
var Absent = Value(math.NaN())
