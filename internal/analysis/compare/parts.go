package compare

import (
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// PartPair is a part that two runs may have: a run inside each, under another
// kernel.
type PartPair struct {
	Dir         string         // below the runs' directories
	Old, New    *result.Record // nil, or without contenders: that run has no such part
	Environment []string       // as of Options
}

// Part is a part of a run that was compared.
type Part struct {
	Dir      string `json:"dir"` // below the run's directory
	Arena    string `json:"arena"`
	Emulated bool   `json:"emulated"` // the CPU
}

func comparedPart(dir string, run *result.Run) Part {
	return Part{Dir: dir, Arena: run.Arena, Emulated: run.Environment[analysis.EmulatedKey] == "true"}
}

// pairings are the runs themselves and their parts, each with its own kind. A
// part of one run alone is a fault of the other; the new run's fails the gate,
// as what was measured before is gone.
func (opt Options) pairings(old, now *result.Record) (list []*pairing, faults []RunFault) {
	pair := func(dir string, was, is *result.Record, environment []string) {
		p := &pairing{part: dir, opt: opt, environment: append(slices.Clone(environment), analysis.EmulatedKey)}
		p.old, p.now = analysis.Collect(was, opt.Complete(&was.Run.Plan)), analysis.Collect(is, opt.Options)
		list = append(list, p)
	}
	pair("", old, now, opt.Environment)
	if p := list[0]; len(opt.MoreOld)+len(opt.MoreNew) > 0 {
		for _, more := range opt.MoreOld {
			p.moreOld = append(p.moreOld, analysis.Collect(more, opt.Complete(&more.Run.Plan)))
		}
		for _, more := range opt.MoreNew {
			p.moreNew = append(p.moreNew, analysis.Collect(more, opt.Complete(&more.Run.Plan)))
		}
		return list, nil
	}
	for _, part := range opt.Parts {
		lacks := "has nothing in " + part.Dir + ", where the other run has what it measured under another kernel"
		switch was, is := opt.takes(part.Old), opt.takes(part.New); {
		case was && is:
			pair(part.Dir, part.Old, part.New, part.Environment)
		case was:
			faults = append(faults, RunFault{From: "new", Text: lacks, Failed: opt.FailOn != nil})
		case is:
			faults = append(faults, RunFault{From: "old", Text: lacks})
		}
	}
	return list, faults
}

// takes says that something of the part is to be compared.
func (opt Options) takes(part *result.Record) bool {
	if part == nil {
		return false
	}
	return slices.ContainsFunc(part.Run.Plan.Contenders, func(e result.Entry) bool {
		return len(opt.Contenders) == 0 || slices.Contains(opt.Contenders, e.ID)
	})
}

// in is a text about the pair, which begins with the part.
func (p *pairing) in(between, text string) string {
	if p.part == "" {
		return text
	}
	return p.part + between + text
}
