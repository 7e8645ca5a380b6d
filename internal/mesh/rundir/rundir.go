// Package rundir keeps a mesh in a run directory like any other: the plan in run.json, a sealed
// sample for every figure. A report is made from these alone. The package measures and judges
// nothing. Next: rundir.go is all of it.
package rundir

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/result"
)

// planKey is the setting that holds the mesh's plan as JSON. A run without it is no mesh.
const planKey = "mesh"

// names are the metrics of a sample by those of a mesh.
var names = map[mesh.Metric]string{mesh.Goodput: "goodput", mesh.Loss: "loss", mesh.RTT: "network_time_p50", mesh.MTU: "packet_size"}

const (
	probesName = "probes"
	heldName   = "pairs_at_once"
	lateNote   = "load_generator_late"
)

// New returns the run of a mesh. settings are those of its arena.
func New(dir string, tool result.Tool, arena, contender string, plan mesh.Plan, absent []string, settings map[string]string, at time.Time) (*result.Run, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(settings)
	if all == nil {
		all = map[string]string{}
	}
	all[planKey] = string(text)
	run := &result.Run{
		ID: filepath.Base(dir), Tool: tool, Started: at.UTC(), Arena: arena,
		Plan:       result.Plan{Suite: "mesh", Rounds: 1, Seed: plan.Seed, Contenders: []result.Entry{{ID: contender}}, Settings: all},
		Contenders: []result.ContenderInfo{{ID: contender}},
	}
	for _, reason := range absent {
		run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: contender, Reason: reason, Remedy: "begin a new mesh once it can run pods"})
	}
	return run, nil
}

// Mesh is a mesh as it was read back.
type Mesh struct {
	Plan      mesh.Plan
	Contender string
	Settings  map[string]string // of the arena
	Figures   []mesh.Figure
	Absent    []string
}

// Read returns the run's mesh; false if the run is none.
func Read(rec *result.Record) (*Mesh, bool, error) {
	text, ok := rec.Run.Plan.Settings[planKey]
	if !ok {
		return nil, false, nil
	}
	m := &Mesh{Settings: maps.Clone(rec.Run.Plan.Settings)}
	delete(m.Settings, planKey)
	if err := json.Unmarshal([]byte(text), &m.Plan); err != nil {
		return nil, true, fmt.Errorf("run.json: the plan of the mesh: %w", err)
	}
	if len(rec.Run.Plan.Contenders) != 1 {
		return nil, true, fmt.Errorf("run.json: a mesh is of one contender, and there are %d", len(rec.Run.Plan.Contenders))
	}
	m.Contender = rec.Run.Plan.Contenders[0].ID
	for i := range rec.Samples {
		f, err := m.figure(&rec.Samples[i])
		if err != nil {
			return nil, true, fmt.Errorf("sample %d: %w", i+1, err)
		}
		m.Figures = append(m.Figures, f)
	}
	for _, u := range rec.Run.Unsupported {
		m.Absent = append(m.Absent, u.Reason)
	}
	return m, true, nil
}

// Report judges the figures.
func (m *Mesh) Report() *mesh.Report {
	r := m.Plan.Report(m.Figures)
	r.Absent = append(r.Absent, m.Absent...)
	return r
}

// Seal makes figures part of the run.
func (m *Mesh) Seal(store *result.Store, figures []mesh.Figure, at time.Time) error {
	var list []*result.Sample
	for i := range figures {
		f := &figures[i]
		s := &result.Sample{
			Contender: m.Contender, Round: 1, Order: len(m.Figures) + i + 1, Step: m.step(f), Workload: "mesh", Path: f.Path,
			Started: at.UTC(), Verdict: result.Valid, Metrics: map[string]float64{},
		}
		for metric, v := range f.Values {
			s.Metrics[names[metric]] = v
		}
		if f.Probes > 0 {
			s.Metrics[probesName] = float64(f.Probes)
		}
		if f.Held > 0 {
			s.Metrics[heldName] = float64(f.Held)
		}
		if f.Late {
			s.Notes = append(s.Notes, result.Reason{Code: lateNote, Text: "the sender was late itself: its round trips and losses are not judged"})
		}
		list = append(list, s)
	}
	if err := store.SealAll(list); err != nil {
		return err
	}
	m.Figures = append(m.Figures, figures...)
	return nil
}

// The first words of a sample's step.
const (
	stepLight = "light"
	stepBurst = "burst"
	stepAgain = "again" // followed by the number of the trial
	stepGone  = "gone"
	stepHeld  = "held"
)

// step names the figure, its trial, its pair and its network: "burst 0 a>b pod".
func (m *Mesh) step(f *mesh.Figure) string {
	pair := m.Plan.Nodes[f.From].Name + ">" + m.Plan.Nodes[f.To].Name
	_, burst := f.Values[mesh.Goodput]
	switch {
	case f.Held > 0:
		return stepHeld + " 0 " + pair + " " + f.Path
	case f.Gone:
		return stepGone + " 0 " + pair + " " + f.Path
	case f.Trial > 0:
		return stepAgain + " " + strconv.Itoa(f.Trial) + " " + pair + " " + f.Path
	case burst:
		return stepBurst + " 0 " + pair + " " + f.Path
	}
	return stepLight + " 0 " + pair + " " + f.Path
}

// figure is the inverse of Seal.
func (m *Mesh) figure(s *result.Sample) (f mesh.Figure, err error) {
	words := strings.Fields(s.Step)
	if len(words) != 4 {
		return f, fmt.Errorf("step %.80q", s.Step)
	}
	if f.Trial, err = strconv.Atoi(words[1]); err != nil || f.Trial < 0 {
		return f, fmt.Errorf("step %.80q", s.Step)
	}
	from, to, _ := strings.Cut(words[2], ">")
	index := func(name string) int {
		return slices.IndexFunc(m.Plan.Nodes, func(n mesh.Node) bool { return n.Name == name })
	}
	if f.From, f.To = index(from), index(to); f.From < 0 || f.To < 0 {
		return f, fmt.Errorf("step %.80q: the plan has no such node", s.Step)
	}
	f.Path, f.Gone, f.Held = words[3], words[0] == stepGone, int(s.Metrics[heldName])
	f.Probes = int(s.Metrics[probesName])
	f.Values = map[mesh.Metric]float64{}
	for metric, name := range names {
		if v, ok := s.Metrics[name]; ok {
			f.Values[metric] = v
		}
	}
	f.Late = slices.ContainsFunc(s.Notes, func(n result.Reason) bool { return n.Code == lateNote })
	return f, nil
}
