// Package diagnose says why pods are slow: it judges what was measured of the paths
// between two nodes (Case) by causes, one file each, and gives a Verdict. The engine
// knows no cause by name; all.go lists them. The package is pure: it measures nothing,
// changes nothing and reads no file, so that a Case that somebody kept gives its verdict
// again. Next: case.go, then offload_off.go as the pattern of a cause.
package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Schema is the version of Verdict's JSON.
const Schema = "cnibench/diagnose/1"

// The verdicts.
const (
	Usual     = "usual"   // nothing but what this datapath costs
	Found     = "cause"   // at least one cause
	Undecided = "unknown" // pods are slow and no cause fits, or too little was measured
)

// Verdict is the answer.
type Verdict struct {
	Schema  string `json:"schema"`
	Verdict string `json:"verdict"`
	// Summary says how pods compare with their nodes, and what is usual.
	Summary  string       `json:"summary"`
	Causes   []Claim      `json:"causes"` // the worst first
	Excluded []Exclusion  `json:"excluded"`
	Unseen   []Unseen     `json:"unseen"`
	Paths    []PathResult `json:"paths"`
}

// State says how sure a cause is.
type State string

// The states, the surest first.
const (
	Proven    State = "proven"    // changing it moved the figure, and changing it back moved it back
	Supported State = "supported" // the evidence accounts for what is slow
	Suspected State = "suspected" // the evidence fits, and what it does is not measured
)

func (s State) rank() int { return slices.Index([]State{Proven, Supported, Suspected}, s) }

// Claim is a cause at a place.
type Claim struct {
	ID        string     `json:"id"`
	State     State      `json:"state"`
	Node      string     `json:"node,omitempty"`
	Device    string     `json:"device,omitempty"`
	Direction string     `json:"direction,omitempty"` // "node-1 → node-2"
	Pod       string     `json:"pod,omitempty"`
	Text      string     `json:"text"` // a sentence: what, where
	Evidence  []Evidence `json:"evidence"`
	Effect    *Effect    `json:"effect,omitempty"` // what changing it did
	Next      string     `json:"next"`             // what to do, with the command
	// Explains is the share of what is slow that the cause accounts for, 0 to 1; 0 is
	// unknown.
	Explains float64 `json:"explains,omitempty"`
	Source   string  `json:"source,omitempty"`

	setting *Setting // that would prove it; nil: none can be changed safely
	// underlay says that the cause is of the nodes' own network, too.
	underlay bool
	// certain says that the cause was read as a setting that differs from a peer's: it
	// stands beside a slow underlay, too.
	certain bool
}

// Evidence is one observation.
type Evidence struct {
	What  string `json:"what"`  // the counter, flag or figure
	Value string `json:"value"` // with its unit
	At    string `json:"at"`    // where it was read
}

// Effect is what changing a cause's setting did to a figure.
type Effect struct {
	Metric  string      `json:"metric"`
	Without float64     `json:"without"` // as it was found
	With    float64     `json:"with"`    // changed
	Ratio   float64     `json:"ratio"`   // with / without, paired by slices
	CI      *[2]float64 `json:"ci,omitempty"`
}

// Exclusion is a cause that is not there, and by what.
type Exclusion struct {
	ID string `json:"id"`
	By string `json:"by"`
}

// Unseen is a cause, or a part of one, that could not be looked at.
type Unseen struct {
	ID     string `json:"id"`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
}

// PathResult is a path's figures in the verdict.
type PathResult struct {
	Path      string             `json:"path"`
	Direction string             `json:"direction"`
	From      string             `json:"from"`
	To        string             `json:"to"`
	Figures   map[string]float64 `json:"figures"`
}

// Answer is what a cause says of a case.
type Answer struct {
	Claims   []Claim
	Excluded string // by what, where there is no claim; "" leaves the cause out of the list
	Unseen   *Unseen
}

// Cause is why pods are slow.
type Cause struct {
	ID      string `json:"id"`
	Summary string `json:"summary"` // what it is
	// Predicts says which paths are slow and which are not.
	Predicts string `json:"predicts"`
	Proof    string `json:"proof,omitempty"` // the setting that proves it; "": none can be changed safely
	Remedy   string `json:"remedy"`
	Source   string `json:"source"`
	// Stops says that a claim of this cause makes those of the pod network idle.
	Stops bool `json:"-"`

	look func(*Case) Answer
}

// Settings returns what would prove the claims of the case, the worst first.
func Settings(c *Case) (list []Setting) {
	untried := *c
	untried.Trials = nil
	for _, claim := range Diagnose(&untried).Causes {
		if s := claim.setting; s != nil {
			s.Key, s.Cause = s.key(), claim.ID
			list = append(list, *s)
		}
	}
	return list
}

// maxRatio is the largest ratio of two slices.
const maxRatio = 1000

// minEffect is the least by which a setting must move a figure to be a cause.
const minEffect = 0.05

// Diagnose judges the case by all causes.
func Diagnose(c *Case) *Verdict { return judge(c, All()) }

func judge(c *Case, causes []Cause) *Verdict {
	v := &Verdict{Schema: Schema, Causes: []Claim{}, Excluded: []Exclusion{}, Unseen: slices.Clone(c.Unseen), Paths: c.results()}
	stopped := false
	var last []Claim
	for _, cause := range causes {
		a := cause.look(c)
		for _, claim := range a.Claims {
			claim.ID, claim.Source = cause.ID, cause.Source
			claim.Next = cmp.Or(claim.Next, cause.Remedy)
			if claim.Evidence == nil {
				claim.Evidence = []Evidence{}
			}
			if by := claim.prove(c.Trials); by != "" {
				v.exclude(cause.ID, by)
				continue
			}
			if cause.Stops {
				stopped = true
				last = append(last, claim)
				continue
			}
			v.Causes = append(v.Causes, claim)
		}
		if len(a.Claims) == 0 && a.Excluded != "" {
			v.exclude(cause.ID, a.Excluded)
		}
		if a.Unseen != nil {
			a.Unseen.ID = cause.ID
			v.Unseen = append(v.Unseen, *a.Unseen)
		}
	}
	if stopped { // the ladder ends at its first rung: what is slow without the pod network
		v.Causes = slices.DeleteFunc(v.Causes, func(x Claim) bool { return !x.underlay && !x.certain && x.State != Proven })
	}
	slices.SortStableFunc(v.Causes, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.State.rank(), b.State.rank()), -cmp.Compare(a.weight(), b.weight()))
	})
	v.Causes = merge(append(v.Causes, last...))
	if v.Unseen == nil {
		v.Unseen = []Unseen{}
	}
	usual, summary := c.usual()
	v.Summary = summary
	switch {
	case len(v.Causes) > 0:
		v.Verdict = Found
	case usual:
		v.Verdict = Usual
	default:
		v.Verdict = Undecided
	}
	return v
}

// merge makes one claim of two that differ in their direction alone.
func merge(claims []Claim) []Claim {
	out := []Claim{}
	for _, x := range claims {
		i := slices.IndexFunc(out, func(y Claim) bool {
			return y.ID == x.ID && y.Node == x.Node && y.Device == x.Device && y.Pod == x.Pod && y.State == x.State
		})
		if i < 0 || x.Direction == "" {
			out = append(out, x)
			continue
		}
		out[i].Evidence = append(slices.Clone(out[i].Evidence), x.Evidence...)
		if out[i].Direction != x.Direction {
			out[i].Direction = bothWays
		}
	}
	return out
}

// bothWays is the direction of what is there in both.
const bothWays = "both ways"

func (v *Verdict) exclude(id, by string) { v.Excluded = append(v.Excluded, Exclusion{id, by}) }

// weight says how much a claim accounts for.
func (x *Claim) weight() float64 {
	if x.Effect != nil && x.Effect.Ratio > 0 {
		return max(x.Effect.Ratio, 1/x.Effect.Ratio)
	}
	return x.Explains
}

// prove turns the claim into a proven one if its setting was changed and the figure
// followed. If the figure did not move, it returns the sentence that excludes the claim.
func (x *Claim) prove(trials []Trial) (excluded string) {
	i := slices.IndexFunc(trials, func(t Trial) bool { return x.setting != nil && t.Key == x.setting.key() })
	if i < 0 {
		return ""
	}
	t := trials[i]
	effect, decided := t.effect()
	if effect == nil {
		return ""
	}
	if !decided {
		x.Effect = effect // shown; what it was before
		if noBetter(effect, t) {
			return fmt.Sprintf("%s at %s was changed and changed back: %s is %.2f times (%.2f to %.2f)", t.What, t.Node, effect.Metric, effect.Ratio, effect.CI[0], effect.CI[1])
		}
		return ""
	}
	x.State, x.Effect = Proven, effect
	return ""
}

// noBetter says that changing the setting left the figure where it was or made it worse.
func noBetter(e *Effect, t Trial) bool {
	i := slices.IndexFunc(t.Figures, func(f TrialFigure) bool { return f.Metric == e.Metric })
	if e.CI == nil || i < 0 {
		return false
	}
	if t.Figures[i].Lower {
		return e.CI[0] > 1-minEffect
	}
	return e.CI[1] < 1+minEffect
}

// effect returns the first figure of the trial that changing the setting moved for the
// better, and whether there is one; else the first figure.
func (t *Trial) effect() (first *Effect, decided bool) {
	for _, f := range t.Figures {
		if len(f.With) == 0 || len(f.With) != len(f.Without) {
			continue
		}
		ratios := make([]float64, len(f.With))
		minimum := slices.Max(slices.Concat(f.With, f.Without)) / maxRatio // slices in which nothing arrived
		for i := range ratios {
			ratios[i] = max(f.With[i], minimum) / max(f.Without[i], minimum, math.SmallestNonzeroFloat64)
		}
		s := stat.PairedShift(ratios, 0.95)
		e := &Effect{Metric: f.Metric, Without: stat.Median(f.Without), With: stat.Median(f.With), Ratio: s.Ratio}
		if s.Bounded() {
			e.CI = &[2]float64{s.Low, s.High}
		}
		better := e.CI != nil && (f.Lower && e.CI[1] < 1-minEffect || !f.Lower && e.CI[0] > 1+minEffect)
		if better {
			return e, true
		}
		if first == nil {
			first = e
		}
	}
	return first, false
}
