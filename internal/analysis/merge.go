package analysis

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Part is a run inside another run's directory: the contenders that needed
// another kernel, with a baseline of their own.
type Part struct {
	Dir         string             `json:"dir"` // below the run's directory
	Arena       string             `json:"arena"`
	Kernels     []string           `json:"kernels"` // whose results are the part's
	Emulated    bool               `json:"emulated"`
	Environment result.Environment `json:"environment"`

	Plan result.Plan `json:"-"`
}

// Merge is the report of a run with that of its part in dir. Neither's
// figures change: results carry their kernel, and kernels are never compared.
// Unsupported is what neither could run.
func Merge(whole, part *Report, dir string) *Report {
	p := Part{
		Dir: dir, Arena: part.Run.Arena, Kernels: kernels(part), Plan: part.Plan,
		Emulated: part.Run.Environment[EmulatedKey] == "true", Environment: part.Run.Environment,
	}
	m := *whole
	m.Parts = append(slices.Clone(whole.Parts), p)
	m.Results = slices.Concat(whole.Results, part.Results)
	m.Findings = slices.Concat(whole.Findings, findingsOf(part, p))
	m.Unsupported = neither(whole, part)
	m.Efficiency = slices.Concat(whole.Efficiency, part.Efficiency)
	m.Curves = slices.Concat(whole.Curves, part.Curves)
	m.Traces = slices.Concat(whole.Traces, part.Traces)
	m.Contenders = slices.Clone(whole.Contenders)
	for _, c := range part.Contenders {
		if !slices.ContainsFunc(m.Contenders, func(o result.ContenderInfo) bool { return o.ID == c.ID }) {
			m.Contenders = append(m.Contenders, c)
		}
	}
	m.Measured = map[result.Key]bool{}
	for _, measured := range []map[result.Key]bool{whole.Measured, part.Measured} {
		for key := range measured {
			m.Measured[key] = true
		}
	}
	return &m
}

// kernels are those that the report's results were taken on.
func kernels(r *Report) []string {
	list := []string{}
	for _, res := range r.Results {
		if !slices.Contains(list, res.Kernel) {
			list = append(list, res.Kernel)
		}
	}
	return list
}

// findingsOf are the part's findings, which say where they were made.
func findingsOf(part *Report, p Part) []Finding {
	where := p.Arena
	if len(p.Kernels) == 1 {
		where = "kernel " + p.Kernels[0]
	}
	list := slices.Clone(part.Findings)
	for i := range list {
		list[i].Text = fmt.Sprintf("%s: %s", where, list[i].Text)
	}
	return list
}

// neither is what the whole could not run, as far as the part could not
// either; the part's reason counts, which names the newer kernel.
func neither(whole, part *Report) []result.Unsupported {
	list := []result.Unsupported{}
	for _, u := range whole.Unsupported {
		same := func(o result.Unsupported) bool { return o.Contender == u.Contender && o.Step == "" }
		if u.Step == "" && (slices.ContainsFunc(part.Unsupported, same) ||
			slices.ContainsFunc(part.Contenders, func(c result.ContenderInfo) bool { return c.ID == u.Contender })) {
			continue
		}
		list = append(list, u)
	}
	for _, u := range part.Unsupported {
		if !slices.ContainsFunc(list, func(o result.Unsupported) bool { return o.Contender == u.Contender && o.Step == u.Step }) {
			list = append(list, u)
		}
	}
	return list
}
