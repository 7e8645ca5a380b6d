package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// traceBudget keeps a report a file that can be sent around.
const traceBudget = 2 << 20

// traces is the second-by-second part of the page's data, as much of it as the
// budget takes.
type traces struct {
	Note string            `json:"note"` // what was left out
	List []json.RawMessage `json:"list"`
}

// traceData is one sample's.
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
	Times       []short           `json:"times"`
	CPU         map[string][]load `json:"cpu,omitempty"`
	Loads       map[string][]load `json:"loads,omitempty"`
	Busiest     []load            `json:"busiest,omitempty"`
	Receive     []mark            `json:"receive,omitempty"`
	Transmit    []mark            `json:"transmit,omitempty"`
	Retransmits []mark            `json:"retransmits,omitempty"`
	Memory      []level           `json:"memory,omitempty"`
}

// mark is a figure of a second: three digits are what a drawing and its table show of
// it, and a missing one is null.
type mark float64

func (m mark) MarshalJSON() ([]byte, error) { return digits(float64(m), 3), nil }

// load is CPU-seconds of a second: the kernel shows them in steps of 10 ms.
type load float64

func (l load) MarshalJSON() ([]byte, error) { return digits(math.Round(100*float64(l))/100, -1), nil }

// level is a figure of a second that changes by little of itself, as memory does.
type level float64

func (l level) MarshalJSON() ([]byte, error) { return digits(float64(l), 5), nil }

// digits is a figure with so many significant digits (-1: as many as it takes), null where
// it is not finite.
func digits(v float64, n int) []byte {
	if !layout.IsFinite(v) {
		return []byte("null")
	}
	return strconv.AppendFloat(nil, v, 'g', n, 64)
}

// as converts figures for drawing.
func as[T ~float64](values []float64) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

// named converts figures that have names for drawing; nil where there are none.
func named(values map[string][]float64) map[string][]load {
	if len(values) == 0 {
		return nil
	}
	out := map[string][]load{}
	for name, list := range values {
		out[printable.Line(name)] = as[load](list)
	}
	return out
}

// traces are all traces within the budget; beyond it those of one round for
// each contender and step, and of these as many as it takes.
func (v *sheet) traces(budget int) traces {
	out := traces{List: []json.RawMessage{}}
	all, size := []json.RawMessage{}, 0
	for i := range v.Traces {
		encoded, err := json.Marshal(v.traceData(&v.Traces[i]))
		if err != nil {
			encoded = nil // no such value is made above
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
	out.Note = fmt.Sprintf("This file holds %d of %s, to keep its size down: of each contender and step the round in the middle of its figures. `cnibench explore` shows more.",
		kept, unit.Plural(len(all), "recording"))
	return out
}

func (v *sheet) traceData(t *analysis.Trace) traceData {
	d := traceData{Group: -1, Step: v.stepPlace(t.Key.Step), Contender: -1, Round: t.Key.Round, Nodes: []traceNode{}}
	for i := range v.Groups {
		if g := &v.Groups[i]; g.Part == t.Part && g.Underlay == t.Key.Underlay {
			d.Group = i
			break
		}
	}
	if place, has := v.colors()[t.Key.Contender]; has {
		d.Contender = place
	}
	for _, n := range t.Nodes {
		node := traceNode{
			Node: printable.Line(n.Node), Window: short(n.Window), Times: as[short](n.Times),
			Receive: as[mark](n.Receive), Transmit: as[mark](n.Transmit), Retransmits: as[mark](n.Retransmits), Memory: as[level](n.Memory),
		}
		if node.CPU, node.Loads = named(n.CPU), named(n.Loads); node.Loads == nil {
			node.Busiest = as[load](n.Busiest)
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d
}

// isMiddle says that the trace is of the round whose goodput, or else latency,
// is the median of the rounds; where rounds are missing, of the one in the
// middle of those that were recorded.
func (v *sheet) isMiddle(t *analysis.Trace) bool {
	key := t.Key
	for _, metric := range result.Own(result.Traffic, result.Typical) {
		for i := range v.Results {
			r := &v.Results[i]
			if r.Part != t.Part || r.Contender != key.Contender || r.Step != key.Step || r.Underlay != key.Underlay || r.Metric != metric || len(r.Values) != v.Run.Rounds {
				continue
			}
			sorted := slices.Sorted(slices.Values(r.Values))
			return slices.Index(r.Values, sorted[(len(sorted)-1)/2])+1 == key.Round
		}
	}
	var rounds []int
	for i := range v.Traces {
		if other := v.Traces[i].Key; v.Traces[i].Part == t.Part && other.Contender == key.Contender && other.Step == key.Step && other.Underlay == key.Underlay {
			rounds = append(rounds, other.Round)
		}
	}
	slices.Sort(rounds)
	return rounds[(len(rounds)-1)/2] == key.Round
}
