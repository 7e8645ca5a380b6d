package analysis

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Difference is something that differs between two runs and can explain why
// their figures do.
type Difference struct {
	Key string `json:"key"`
	Old string `json:"old"` // "" where it is not known
	New string `json:"new"`
}

// underTest are settings that are no condition but the thing that is
// compared: the user's own CNI configuration.
var underTest = []string{"cni-conf", "cni-conf-text", "cni-transport"}

// differences are those of the plans and of the named keys of the
// environments, in the order: arena, settings, windows, steps, contenders,
// environment. Steps and contenders that only one run has are no difference,
// but missing.
func differences(old, now *result.Run, environment []string) []Difference {
	list := []Difference{}
	differ := func(key string, a, b any) {
		if x, y := text(a), text(b); x != y {
			list = append(list, Difference{key, x, y})
		}
	}
	differ("arena", old.Arena, now.Arena)
	differ("baseline", old.Baseline, now.Baseline)
	for _, key := range keysOf(old.Plan.Settings, now.Plan.Settings) {
		if !slices.Contains(underTest, key) {
			differ("setting."+key, old.Plan.Settings[key], now.Plan.Settings[key])
		}
	}
	differ("duration", old.Plan.Duration, now.Plan.Duration)
	differ("warmup", old.Plan.Warmup, now.Plan.Warmup)
	for _, a := range old.Plan.Steps {
		i := slices.IndexFunc(now.Plan.Steps, func(b result.Step) bool { return a.ID == b.ID })
		if i < 0 {
			continue
		}
		b, key := now.Plan.Steps[i], "step."+a.ID
		differ(key+".workload", a.Workload, b.Workload)
		differ(key+".path", a.Path, b.Path)
		for _, param := range keysOf(a.Params, b.Params) {
			differ(key+"."+param, a.Params[param], b.Params[param])
		}
	}
	for _, a := range old.Contenders {
		i := slices.IndexFunc(now.Contenders, func(b result.ContenderInfo) bool { return a.ID == b.ID })
		if i < 0 {
			continue
		}
		b, key := now.Contenders[i], "contender."+a.ID
		differ(key+".version", a.Version, b.Version)
		differ(key+".datapath", a.Datapath, b.Datapath)
		differ(key+".overhead_bytes", a.Overhead, b.Overhead)
	}
	for _, key := range environment {
		differ("environment."+key, old.Environment[key], now.Environment[key])
	}
	return list
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// keysOf are the keys of both maps, sorted.
func keysOf[V any](a, b map[string]V) []string {
	keys := map[string]bool{}
	for _, m := range []map[string]V{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
