package compare

import (
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// PartPair is the same part of two runs: a run inside each, under another kernel.
type PartPair struct {
	Dir         string         // below the runs' directories
	Old, New    *result.Record // nil or without contenders if the run has no such part
	Environment []string       // as of Options
}

// Part is a part of a run that was compared.
type Part struct {
	Dir      string `json:"dir"` // below the run's directory
	Arena    string `json:"arena"`
	Emulated bool   `json:"emulated"` // the CPU
}

func comparedPart(dir string, run *result.Run) Part {
	return Part{Dir: dir, Arena: run.Arena, Emulated: run.Environment[result.EmulatedKey] == "true"}
}

// pairings returns a pairing of the two runs, and one for each part that both have. If only
// one run has a part, that is a fault of the other run. A fault of the new run fails the
// gate, because something that was measured before is missing.
func (opt Options) pairings(old, now *result.Record) (list []*pairing, faults []RunFault) {
	pair := func(dir string, old, now *result.Record, environment []string) {
		p := &pairing{part: dir, opt: opt, environment: append(slices.Clone(environment), result.EmulatedKey)}
		p.old, p.now = analysis.Collect(old, opt.Complete(&old.Run.Plan)), analysis.Collect(now, opt.Options)
		list = append(list, p)
	}
	pair("", old, now, opt.Environment)
	if p := list[0]; len(opt.RepeatsOld)+len(opt.RepeatsNew) > 0 {
		for _, repeat := range opt.RepeatsOld {
			p.repeatsOld = append(p.repeatsOld, analysis.Collect(repeat, opt.Complete(&repeat.Run.Plan)))
		}
		for _, repeat := range opt.RepeatsNew {
			p.repeatsNew = append(p.repeatsNew, analysis.Collect(repeat, opt.Complete(&repeat.Run.Plan)))
		}
		return list, nil
	}
	for _, part := range opt.Parts {
		lacks := "has nothing in " + part.Dir + ", where the other run has what it measured under another kernel"
		switch inOld, inNew := opt.takes(part.Old), opt.takes(part.New); {
		case inOld && inNew:
			pair(part.Dir, part.Old, part.New, part.Environment)
		case inOld:
			faults = append(faults, RunFault{From: "new", Text: lacks, Failed: opt.FailOn != nil})
		case inNew:
			faults = append(faults, RunFault{From: "old", Text: lacks})
		}
	}
	return list, faults
}

// takes says whether the part has a contender that is compared.
func (opt Options) takes(part *result.Record) bool {
	if part == nil {
		return false
	}
	return slices.ContainsFunc(part.Run.Plan.Contenders, func(e result.Entry) bool {
		return len(opt.Contenders) == 0 || slices.Contains(opt.Contenders, e.ID)
	})
}

// withPart puts the part's name before the text.
func (p *pairing) withPart(between, text string) string {
	if p.part == "" {
		return text
	}
	return p.part + between + text
}
