package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Difference is something that differs between two runs and can explain why
// their figures do.
type Difference struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// toolKey and digestSuffix are of differences between versions of cnibench.
const (
	toolKey      = "tool.version"
	digestSuffix = ".sha256"

	arenaImported = "imported"
)

// OfVersions says that the difference is one between versions of cnibench: of the
// programs or of a contender's file.
func (d *Difference) OfVersions() bool {
	return d.Key == toolKey || strings.HasSuffix(d.Key, digestSuffix)
}

// underTest are settings that are no condition but the thing that is
// compared: the user's own CNI configuration.
var underTest = []string{"cni-conf", "cni-conf-text", "cni-transport"}

// differences are those of the plans and of the named keys of the
// environments, in the order: arena, settings, windows, steps, contenders,
// environment. A key that only one run records proves no difference, as every
// version of cnibench records more than the one before: it is vague. Steps and
// contenders that only one run has are missing, and no difference.
func differences(old, now *result.Run, oldTools, nowTools, environment []string) (list []Difference, vague []string) {
	list = []Difference{}
	differ := func(key string, a, b any) {
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			list = append(list, Difference{key, x, y})
		}
	}
	mixed := len(oldTools) > 1 || len(nowTools) > 1 || !slices.Equal(oldTools, nowTools)
	if mixed && old.Arena != arenaImported { // which others measured
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
		was, is := maps.Clone(a.Params), maps.Clone(b.Params)
		for _, params := range []map[string]any{was, is} { // older runs of workloads that have it now
			if _, known := params[result.BandwidthParam]; !known && params != nil {
				params[result.BandwidthParam] = "0"
			}
		}
		if _, _, left := otherRate(old, now, a.ID); left { // the step is not compared
			delete(was, result.RateParam)
			delete(is, result.RateParam)
		}
		vague = append(vague, differInKeys(key+".", was, is, differ)...)
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

// differInKeys calls differ for the keys that both have, and returns those
// that one lacks.
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
