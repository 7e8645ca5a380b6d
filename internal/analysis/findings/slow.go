package findings

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// slowPods finds contenders whose bulk TCP is far below what their datapath usually leaves of
// the nodes' own. diagnose names the cause.
func slowPods(e *evidence) []analysis.Finding {
	if e.Run.Arena == imported {
		return nil
	}
	var list []analysis.Finding
	for _, at := range e.Keys {
		if at.Metric != result.Goodput || e.IsUDP(at.Step) || e.Bandwidth(at.Step) > 0 {
			continue
		}
		base := e.Headline(e.BaseOf(at), e.Run.Baseline)
		for _, c := range e.Run.Contenders {
			kind := diagnose.TransportOf(c.Datapath)
			figure := e.Headline(at, c.ID)
			usual, known := diagnose.UsualGoodput(kind)
			if !known || !(base > 0) || math.IsNaN(figure) || figure <= 0 || figure >= usual[0]*base {
				continue
			}
			list = append(list, analysis.Finding{Contender: c.ID, Step: at.Step, Weight: math.Log(base / figure),
				Text: fmt.Sprintf("%s%s of %s's %s: %.2g×, usual for %s are %.2g to %.2g×", e.GroupPrefix(at.ComparableSet), unit.Format(figure, "bit/s"), e.Run.Baseline,
					unit.Format(base, "bit/s"), figure/base, kind, usual[0], usual[1])})
		}
	}
	return list
}
