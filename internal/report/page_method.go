package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
)

// repeatable are the plan's settings that are flags of the same name.
var repeatable = []string{"nodes", "underlay", "mtu", "line-rate", "offload", "congestion-control", "cpus", "cni-conf", "cni-transport", "check"}

// repeat is the command that makes the same run again, from the plan; "" if
// the report carries none.
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
		words = append(words, "--duration", exact(float64(r.Plan.Duration))+"s")
	}
	if r.Plan.Warmup > 0 {
		words = append(words, "--warmup", exact(float64(r.Plan.Warmup))+"s")
	}
	words = append(words, "--seed", fmt.Sprint(r.Plan.Seed))
	if r.Baseline != "" && r.Baseline != "host" { // the flag's default
		words = append(words, "--baseline", r.Baseline)
	}
	for _, flag := range repeatable {
		if value := r.Plan.Settings[flag]; value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shellWord is s as one word of a shell's command line.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/=+%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
