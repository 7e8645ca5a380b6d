package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

// repeatable and clusterFlags are the plan's settings that are flags of the same name.
// clusterFlags are settings of a run in a cluster; the plan does not say which cluster.
var (
	repeatable = []string{"study", "scale", "steps", "rates", "max-rate", "nodes", "underlay", "mtu", "pod-mtu", "line-rate", "offload", "congestion-control", "cpus", "cni-conf", "cni-transport", "check",
		"kernel", "modules", "accel", "vm-cpus", "vm-memory"}

	clusterFlags = []string{"image", "pull-policy", "namespace-prefix", "tolerations", "pod-cpu", "pod-memory", "service-kind", "install", "versions"}
)

// repeat returns the command that makes the same run again; "" if the report has no plan.
func repeat(r *analysis.Report) string {
	if len(r.Plan.Contenders) == 0 {
		return ""
	}
	var ids []string
	for _, e := range r.Plan.Contenders {
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	words := []string{"cnibench", "run", "--arena", r.Run.Arena, "--suite", r.Plan.Suite, "--contenders", strings.Join(ids, ","),
		"--rounds", fmt.Sprint(r.Plan.Rounds)}
	if r.Plan.Duration > 0 {
		words = append(words, "--duration", layout.Exact(float64(r.Plan.Duration))+"s")
	}
	if r.Plan.Warmup > 0 {
		words = append(words, "--warmup", layout.Exact(float64(r.Plan.Warmup))+"s")
	}
	words = append(words, "--seed", fmt.Sprint(r.Plan.Seed))
	if r.Baseline != "" && r.Baseline != "host" { // the flag's default
		words = append(words, "--baseline", r.Baseline)
	}
	if counts := services(r.Plan.Steps); counts != "" {
		words = append(words, "--services", counts)
	}
	if changes := r.Plan.Settings["set"]; changes != "" {
		for change := range strings.SplitSeq(changes, "\n") {
			words = append(words, "--set", change)
		}
	}
	for _, flag := range repeatable {
		if value := r.Plan.Settings[flag]; value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	for _, flag := range clusterFlags {
		if value := r.Plan.Settings[flag]; value != "" {
			words = append(words, "--"+flag+"="+value)
		}
	}
	for i, w := range words {
		words[i] = text.ShellWord(w)
	}
	return strings.Join(words, " ")
}

// services returns the numbers of other Services of the steps, separated by commas.
func services(steps []result.Step) string {
	var counts []string
	for _, s := range steps {
		if n := strconv.Itoa(s.Services); s.Services > 0 && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	return strings.Join(counts, ",")
}
