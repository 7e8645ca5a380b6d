package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// The lists that reports ask for follow from the rows of the catalogue.
func TestListsOfMetrics(t *testing.T) {
	for name, list := range map[string]struct{ got, want []string }{
		"own":        {result.MainMetrics(result.Traffic, result.Typical, result.Tail, result.Cost), []string{"goodput", "network_time_p50", "network_time_p99", "cpu_per_gbit"}},
		"telling":    {result.OfAspect(result.Typical), []string{"network_time_p50", "latency_p50", "service_time_p50", "latency_mean"}},
		"divided by": {result.DividedBy("goodput"), []string{"cpu_per_gbit", "cpu_per_gbit_published", "cpu_per_gbit_user_system"}},
		"columns":    {result.ColumnsWhere(func(m result.Metric) bool { return m.Percent > 0 }), []string{"network_time_p50", "network_time_p99", "latency_p50", "latency_p99", "latency_p99_9"}},
	} {
		if diff := cmp.Diff(list.want, list.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestClocksTellHowLongAStepTakes(t *testing.T) {
	if diff := cmp.Diff([]string{"latency", "service_time", "network_time"}, result.Clocks()); diff != "" {
		t.Error(diff)
	}
}
