package analysis

import (
	"slices"
	"strings"

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

// mostLoss is the share of datagrams beyond which goodput says what was
// dropped, not what the path carries.
const MostLoss = 0.10

// isMerit says that more or less of a metric is the contender's doing, and good
// or bad: the load generator's own lag, for one, is not.
func IsMerit(metric string) bool {
	return !slices.Contains(descriptive, metric) && !strings.HasPrefix(metric, "send_lag_")
}

// ranked are the contenders of a place whose figures may be ranked: with
// values of single rounds, and where the figures are what they say.
func (e *Evidence) Ranked(at Place, contenders map[string]Series) map[string]Series {
	list := map[string]Series{}
	if !IsMerit(at.Metric) || at.Metric == "rate" && e.Pace(at.Step) > 0 ||
		strings.HasPrefix(at.Metric, "cpu_") && e.Aliased(at.Step) {
		return list
	}
	for c, s := range contenders {
		if len(s) > 0 && !e.Lossy(at, c) {
			list[c] = s
		}
	}
	return list
}

// lossy says that so many datagrams were lost that a figure tells of the
// sender and not of the path; that of UDP whose loss nobody counted may.
func (e *Evidence) Lossy(at Place, contender string) bool {
	if at.Metric != "goodput" && !strings.HasPrefix(at.Metric, "cpu_per_") {
		return false
	}
	loss := e.Figures[Place{at.Group, at.Step, "loss"}][contender]
	if len(loss) == 0 {
		return at.Metric != "cpu_per_request" && e.IsUDP(at.Step)
	}
	return stat.Median(loss.Values()) > MostLoss
}
