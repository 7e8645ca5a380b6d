package tune

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/nearest"
)

// Choice is a setting with the parameters that differ from its defaults.
type Choice struct {
	Setting string `json:"setting"`
	Params  Params `json:"params,omitempty"`
}

// Profile is a list of settings for a purpose.
type Profile struct {
	Name    string
	Summary string
	Choices []Choice
}

// Profiles lists the profiles. Their settings are applied in the order of All.
func Profiles() []Profile {
	return []Profile{
		{"latency", "what shortens the way of a single packet", choices(
			Choice{"tuned", Params{"profile": "network-latency"}},
			Choice{"governor", nil}, Choice{"irqbalance", nil}, Choice{"irq", nil},
			Choice{"slow-start-idle", nil}, Choice{"numa", nil}, Choice{"server-threads", nil},
		)},
		{"throughput", "what moves more bytes for the same CPU", choices(
			Choice{"tuned", Params{"profile": "network-throughput"}},
			Choice{"governor", nil}, Choice{"rings", nil}, Choice{"offloads", nil}, Choice{"mtu", nil},
			Choice{"irqbalance", nil}, Choice{"irq", nil}, Choice{"xps", nil},
			Choice{"socket-limits", nil}, Choice{"socket-buffers", nil}, Choice{"numa", nil},
		)},
		{"study-2016", "tail latency at constant rates (Machine Zone, 2016), less what is harmful today", choices(
			Choice{"tuned", Params{"profile": "network-latency"}},
			Choice{"irqbalance", nil}, Choice{"irq", nil}, Choice{"rps", nil}, Choice{"xps", nil},
			Choice{"rfs", Params{"flows": "60000"}},
			Choice{"server-threads", nil}, Choice{"sched-migration-cost", nil}, Choice{"notrack", nil},
			Choice{"file-max", nil}, Choice{"local-ports", nil}, Choice{"tw-buckets", nil}, Choice{"tw-reuse", nil},
			Choice{"fin-timeout", nil}, Choice{"slow-start-idle", nil},
			Choice{"tcp-low-latency", nil}, Choice{"tcp-tw-recycle", nil},
		)},
		{"study-2024", "the tuned variants of the 40 Gbit/s study (A. Ducastel, 2024)", choices(
			Choice{"smt", nil}, Choice{"governor", nil}, Choice{"mtu", nil}, Choice{"numa", nil},
			Choice{"socket-limits", nil}, Choice{"socket-buffers", nil}, Choice{"metrics-save", nil},
		)},
		{"kube-ovn", "Kube-OVN's page on performance tuning", choices(
			Choice{"tuned", Params{"profile": "network-latency"}},
			Choice{"governor", nil}, Choice{"rings", nil}, Choice{"irqbalance", nil}, Choice{"irq", nil},
			Choice{"ovn-lb", nil}, Choice{"ovn-skip-conntrack", nil}, Choice{"fastpath", nil}, Choice{"ovs-module", nil},
			Choice{"stt-tunnel", nil},
		)},
	}
}

func choices(list ...Choice) []Choice { return list }

// LookupProfile finds a profile by name. Its error is a *nearest.Error.
func LookupProfile(name string) (Profile, error) {
	return nearest.Find("profile", name, Profiles(), func(p Profile) string { return p.Name })
}

// complete checks the parameters and fills in the defaults.
func (s Setting) complete(given Params) (Params, error) {
	all := Params{}
	var names []string
	for _, p := range s.Params {
		all[p.Name] = p.Default
		names = append(names, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := all[name]; !known {
			if len(names) == 0 {
				return nil, fmt.Errorf("setting %s has no parameters", s.Name)
			}
			return nil, nearest.Unknown("parameter of "+s.Name, name, names)
		}
		all[name] = given[name]
	}
	return all, nil
}
