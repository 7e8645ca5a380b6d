package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Difference is a difference between two runs that can explain why their figures differ.
type Difference struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// toolKey, and a key that ends in digestSuffix, mean a difference between versions of cnibench.
const (
	toolKey      = "tool.version"
	digestSuffix = ".sha256"

	arenaImported = "imported"
)

// OfVersions says whether the difference is due to another version of cnibench: another
// program, or another file of a contender.
func (d *Difference) OfVersions() bool {
	return d.Key == toolKey || strings.HasSuffix(d.Key, digestSuffix)
}

// underTest are settings whose effect is measured, and that are therefore no conditions of
// the comparison: the user's own CNI configuration.
var underTest = []string{"cni-conf", "cni-conf-text", "cni-transport"}

// differences returns the differences between the plans, and between the environments in
// the named keys, in the order: arena, settings, windows, steps, contenders, environment.
// Keys that only one run has are returned as vague: they need not differ, because newer
// versions of cnibench record more keys. Steps and contenders that only one run has are no
// differences; they are reported as missing figures.
func differences(old, now *result.Run, oldTools, nowTools, environment []string) (list []Difference, vague []string) {
	list = []Difference{}
	differ := func(key string, a, b any) {
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			list = append(list, Difference{key, x, y})
		}
	}
	mixed := len(oldTools) > 1 || len(nowTools) > 1 || !slices.Equal(oldTools, nowTools)
	if mixed && old.Arena != arenaImported { // other programs measured an imported run
		list = append(list, Difference{toolKey, strings.Join(oldTools, ", "), strings.Join(nowTools, ", ")})
	}
	differ("arena", old.Arena, now.Arena)
	differ("baseline", old.Baseline, now.Baseline)
	vague = append(vague, differInKeys("setting.", old.Plan.Settings, now.Plan.Settings, differ)...)
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
		oldParams, nowParams := maps.Clone(a.Params), maps.Clone(b.Params)
		for _, params := range []map[string]any{oldParams, nowParams} { // older versions had no such parameter
			if _, known := params[result.BandwidthParam]; !known && params != nil {
				params[result.BandwidthParam] = "0"
			}
		}
		if _, _, left := otherRate(old, now, a.ID); left { // the step is not compared
			delete(oldParams, result.RateParam)
			delete(nowParams, result.RateParam)
		}
		vague = append(vague, differInKeys(key+".", oldParams, nowParams, differ)...)
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
		if a.SHA256 != "" && b.SHA256 != "" {
			differ(key+digestSuffix, a.SHA256, b.SHA256)
		}
	}
	decisive := func(env result.Environment) map[string]string {
		only := map[string]string{}
		for _, key := range environment {
			if v, known := env[key]; known {
				only[key] = v
			}
		}
		return only
	}
	return list, append(vague, differInKeys("environment.", decisive(old.Environment), decisive(now.Environment), differ)...)
}

// differInKeys calls differ for the keys that both maps have, and returns the keys that
// only one map has.
func differInKeys[V any](prefix string, old, now map[string]V, differ func(key string, a, b any)) (vague []string) {
	for _, key := range keysOf(old, now) {
		a, inOld := old[key]
		b, inNow := now[key]
		switch {
		case slices.Contains(underTest, key):
		case inOld && inNow:
			differ(prefix+key, a, b)
		default:
			vague = append(vague, prefix+key)
		}
	}
	return vague
}

// keysOf returns the keys of either map, sorted.
func keysOf[V any](a, b map[string]V) []string {
	keys := map[string]bool{}
	for _, m := range []map[string]V{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
