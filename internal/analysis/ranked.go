package analysis

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// descriptive are metrics that say what happened and not how well: they have
// a unit and a direction, but less of them is no merit. memory_overhead is
// one of them for as long as all nodes share one machine: what else runs there
// moves it more than a contender does.
var descriptive = []string{
	"transfers", "packets", "bytes_per_packet", "context_switches", "memory_used", "memory_overhead",
	"cpu_per_packet",           // follows the packets' size: less in each may be more in all
	"cpu_per_gbit_user_system", // a lower bound: how much it leaves out depends on the datapath
	"cpu_client_steal", "cpu_client_iowait", "cpu_server_steal", "cpu_server_iowait",
}

// isMerit says that more or less of a metric is the contender's doing, and good
// or bad: the load generator's own lag, for one, is not.
func isMerit(metric string) bool {
	return !slices.Contains(descriptive, metric) && !strings.HasPrefix(metric, "send_lag_")
}

// ranked are the contenders of a place whose figures may be ranked: with
// values of single rounds, and where the figures are what they say.
func (e *evidence) ranked(at place, contenders map[string]series) map[string]series {
	list := map[string]series{}
	if !isMerit(at.Metric) || at.Metric == "rate" && e.pace(at.Step) > 0 ||
		strings.HasPrefix(at.Metric, "cpu_") && e.aliased(at.Step) {
		return list
	}
	for c, s := range contenders {
		if len(s) > 0 && !e.lossy(at, c) {
			list[c] = s
		}
	}
	return list
}

// lossy says that so many datagrams were lost that a figure tells of the
// sender and not of the path; that of UDP whose loss nobody counted may.
func (e *evidence) lossy(at place, contender string) bool {
	if at.Metric != "goodput" && !strings.HasPrefix(at.Metric, "cpu_per_") {
		return false
	}
	loss := e.figures[place{at.group, at.Step, "loss"}][contender]
	if len(loss) == 0 {
		return at.Metric != "cpu_per_request" && e.isUDP(at.Step)
	}
	return stat.Median(loss.values()) > mostLoss
}

// pace is the constant rate of a step's load (1/s), 0 where it has none.
func (e *evidence) pace(step string) float64 {
	i := slices.IndexFunc(e.run.Plan.Steps, func(s result.Step) bool { return s.ID == step })
	if i < 0 {
		return 0
	}
	switch rate := e.run.Plan.Steps[i].Params["rate"].(type) {
	case float64:
		return rate
	case int:
		return float64(rate)
	}
	return 0
}
