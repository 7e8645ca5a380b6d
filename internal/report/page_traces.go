package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// traceBudget is the default limit of the traces in bytes, so that the page can be sent by
// mail.
const traceBudget = 2 << 20

// traces is the second-by-second part of the page's data.
type traces struct {
	Note string            `json:"note"` // what was left out
	List []json.RawMessage `json:"list"`
}

// traceData is the trace of one sample.
type traceData struct {
	Group     int         `json:"g"`
	Step      int         `json:"s"`
	Contender int         `json:"c"`
	Round     int         `json:"round"`
	Nodes     []traceNode `json:"nodes"`
}

type traceNode struct {
	Node        string            `json:"node"`
	Window      short             `json:"window"`
	Measured    short             `json:"measured,omitempty"`
	Times       []short           `json:"times"`
	CPU         map[string][]load `json:"cpu,omitempty"`
	Loads       map[string][]load `json:"loads,omitempty"`
	Busiest     []load            `json:"busiest,omitempty"`
	Receive     []mark            `json:"receive,omitempty"`
	Transmit    []mark            `json:"transmit,omitempty"`
	Retransmits []mark            `json:"retransmits,omitempty"`
	Memory      []level           `json:"memory,omitempty"`
}

// mark is a figure of a second, written with three digits, because the drawing and its
// table show no more.
type mark float64

func (m mark) MarshalJSON() ([]byte, error) { return digits(float64(m), 3), nil }

// load is CPU-seconds of a second, written in steps of 10 ms, as the kernel counts.
type load float64

func (l load) MarshalJSON() ([]byte, error) { return digits(math.Round(100*float64(l))/100, -1), nil }

// level is a figure of a second whose relative changes are small, such as memory. It is
// written with five digits.
type level float64

func (l level) MarshalJSON() ([]byte, error) { return digits(float64(l), 5), nil }

// digits returns v with n significant digits (-1: as many as needed), or null if v is not
// finite.
func digits(v float64, n int) []byte {
	if !layout.IsFinite(v) {
		return []byte("null")
	}
	return strconv.AppendFloat(nil, v, 'g', n, 64)
}

// convert converts figures to a type for drawing.
func convert[T ~float64](values []float64) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

// toLoads converts figures that have names for drawing; nil if there are none.
func toLoads(values map[string][]float64) map[string][]load {
	if len(values) == 0 {
		return nil
	}
	out := map[string][]load{}
	for name, list := range values {
		out[text.SafeLine(name)] = convert[load](list)
	}
	return out
}

// traces returns all traces if they fit into the budget (bytes). Otherwise it returns the
// traces of a single round for each contender and step, as many as fit.
func (v *sheet) traces(budget int) traces {
	out := traces{List: []json.RawMessage{}}
	all, size := []json.RawMessage{}, 0
	for i := range v.Traces {
		encoded, err := json.Marshal(v.traceData(&v.Traces[i]))
		if err != nil {
			encoded = nil // cannot happen: all types of traceData can be encoded
		}
		all, size = append(all, encoded), size+len(encoded)
	}
	if size <= budget {
		out.List = all
		return out
	}
	size = 0
	kept := 0
	for i := range v.Traces {
		if !v.isMiddle(&v.Traces[i]) || size+len(all[i]) > budget {
			continue
		}
		size, kept = size+len(all[i]), kept+1
		out.List = append(out.List, all[i])
	}
	out.Note = fmt.Sprintf("This file holds %d of %s, to keep its size down: of each contender and step the round in the middle of its figures. The command cnibench explore shows more.",
		kept, unit.Plural(len(all), "recording"))
	return out
}

func (v *sheet) traceData(t *analysis.Trace) traceData {
	d := traceData{Group: -1, Step: v.stepPlace(t.Key.Step), Contender: -1, Round: t.Key.Round, Nodes: []traceNode{}}
	for i := range v.Groups {
		if g := &v.Groups[i]; g.Underlay == t.Key.Underlay {
			d.Group = i
			break
		}
	}
	if place, has := v.colors()[t.Key.Contender]; has {
		d.Contender = place
	}
	for _, n := range t.Nodes {
		node := traceNode{
			Node: text.SafeLine(n.Node), Window: short(n.Window), Measured: short(n.Measured), Times: convert[short](n.Times),
			Receive: convert[mark](n.Receive), Transmit: convert[mark](n.Transmit), Retransmits: convert[mark](n.Retransmits), Memory: convert[level](n.Memory),
		}
		if node.CPU, node.Loads = toLoads(n.CPU), toLoads(n.Loads); node.Loads == nil {
			node.Busiest = convert[load](n.Busiest)
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d
}

// isMiddle says whether the trace is that of the round whose goodput (or else latency) is
// the median of the rounds. If rounds are missing, the middle one of the recorded rounds
// counts.
func (v *sheet) isMiddle(t *analysis.Trace) bool {
	key := t.Key
	for _, metric := range result.MainMetrics(result.Traffic, result.Typical) {
		for i := range v.Results {
			r := &v.Results[i]
			if r.Contender != key.Contender || r.Step != key.Step || r.Underlay != key.Underlay || r.Metric != metric || len(r.Values) != v.Run.Rounds {
				continue
			}
			sorted := slices.Sorted(slices.Values(r.Values))
			return slices.Index(r.Values, sorted[(len(sorted)-1)/2])+1 == key.Round
		}
	}
	var rounds []int
	for i := range v.Traces {
		if other := v.Traces[i].Key; other.Contender == key.Contender && other.Step == key.Step && other.Underlay == key.Underlay {
			rounds = append(rounds, other.Round)
		}
	}
	slices.Sort(rounds)
	return rounds[(len(rounds)-1)/2] == key.Round
}
