package watch

import (
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/mesh"
)

// Change is what has become of a place.
type Change string

const (
	Slow      Change = "slow"
	Recovered Change = "recovered"
	Left      Change = "left" // a node of a slow place is measured no more: no alarm, and no recovery
)

// Event says that a place has changed.
type Event struct {
	Time   time.Time  `json:"time"`
	Change Change     `json:"change"`
	Place  mesh.Place `json:"place"`
	Since  time.Time  `json:"since"`          // when it turned slow
	Next   string     `json:"next,omitempty"` // the command that looks for the cause
}

// Text returns the event without its time: "slow: what node3 sends: …".
func (e Event) Text() string {
	if e.Change != Slow {
		return fmt.Sprintf("%s: %s: %s (%s), slow since %s", e.Change, e.Place.Where(), e.Place.Metric, e.Place.Network(), e.Since.UTC().Format(time.RFC3339))
	}
	text := string(e.Change) + ": " + e.Place.Text()
	if e.Next != "" {
		text += "; next: " + e.Next
	}
	return text
}

// String returns the event as a line.
func (e Event) String() string { return e.Time.UTC().Format(time.RFC3339) + " " + e.Text() }

// State is which places are slow.
type State struct{ places []*place }

type place struct {
	mesh.Place
	since time.Time
	sound int // rounds in a row in which it was measured and no suspect
}

// soundRounds is how many rounds in a row a place must be no suspect to have recovered. A suspect
// is what is half as bad as what is worth a name, so a place at the limit does not flap.
const soundRounds = 2

// Open returns the places that are slow now.
func (s *State) Open() (out []mesh.Place) {
	for _, p := range s.places {
		out = append(out, p.Place)
	}
	return out
}

func (s *State) has(m mesh.Metric) bool {
	return slices.ContainsFunc(s.places, func(p *place) bool { return p.Metric == m })
}

// Update takes a round and returns what has changed. A place that was not measured, as that of a
// node that is just restarted, stays what it is; one of a node that has left is forgotten.
func (s *State) Update(plan *mesh.Plan, figures []mesh.Figure, r *mesh.Report, at time.Time) (events []Event) {
	suspects := plan.SuspectPlaces(figures)
	s.places = slices.DeleteFunc(s.places, func(p *place) bool {
		change := Recovered
		switch suspected := slices.ContainsFunc(suspects, func(o mesh.Place) bool { return o.Within(p.Place) && o.Path == p.Path }); {
		case !present(plan.Nodes, p.Place):
			change = Left
		case !measured(plan.Nodes, figures, r, p.Place):
			return false
		case suspected:
			p.sound = 0
			return false
		default:
			if p.sound++; p.sound < soundRounds {
				return false
			}
		}
		events = append(events, Event{Time: at, Change: change, Place: p.Place, Since: p.since})
		return true
	})
	good := r.Good()
	for _, p := range r.Slow {
		if !slices.ContainsFunc(s.Open(), p.Within) {
			s.places = append(s.places, &place{Place: p, since: at})
			events = append(events, Event{Time: at, Change: Slow, Place: p, Since: at, Next: p.Next(good)})
		}
	}
	return events
}

// present reports whether the place's nodes, or zones, are in the list.
func present(nodes []mesh.Node, p mesh.Place) bool {
	is := func(name string) bool {
		return name == "" || slices.ContainsFunc(nodes, func(n mesh.Node) bool {
			return p.Kind == mesh.Border && n.Zone == name || p.Kind != mesh.Border && n.Name == name
		})
	}
	return is(p.From) && is(p.To)
}

// measured reports whether the round has a figure that could have made the place a suspect.
func measured(nodes []mesh.Node, figures []mesh.Figure, r *mesh.Report, p mesh.Place) bool {
	return slices.ContainsFunc(figures, func(f mesh.Figure) bool {
		from, to := nodes[f.From], nodes[f.To]
		if _, has := f.Values[p.Metric]; !has || f.Path != p.Path || f.Trial > 0 || f.Late && p.Metric != mesh.MTU ||
			slices.Contains(r.Gone, from.Name) || slices.Contains(r.Gone, to.Name) {
			return false
		}
		switch p.Kind {
		case mesh.Border:
			return from.Zone == p.From && to.Zone == p.To
		case mesh.Link:
			return from.Name == p.From && to.Name == p.To
		case mesh.Receiver:
			return to.Name == p.To
		}
		return from.Name == p.From
	})
}
