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
		{"latency", "what shortens the way of a single packet", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"governor", nil}, {"irqbalance", nil}, {"irq", nil},
			{"slow-start-idle", nil}, {"numa", nil}, {"server-threads", nil},
		}},
		{"throughput", "what moves more bytes for the same CPU", []Choice{
			{"tuned", Params{"profile": "network-throughput"}},
			{"governor", nil}, {"rings", nil}, {"offloads", nil}, {"mtu", nil},
			{"irqbalance", nil}, {"irq", nil}, {"xps", nil},
			{"socket-limits", nil}, {"socket-buffers", nil}, {"numa", nil},
		}},
		{"study-2016", "tail latency at constant rates (Machine Zone, 2016), less what is harmful today", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"irqbalance", nil}, {"irq", nil}, {"rps", nil}, {"xps", nil},
			{"rfs", Params{"flows": "60000"}},
			{"server-threads", nil}, {"sched-migration-cost", nil}, {"notrack", nil},
			{"file-max", nil}, {"local-ports", nil}, {"tw-buckets", nil}, {"tw-reuse", nil},
			{"fin-timeout", nil}, {"slow-start-idle", nil},
			{"tcp-low-latency", nil}, {"tcp-tw-recycle", nil},
		}},
		{"study-2024", "the tuned variants of the 40 Gbit/s study (A. Ducastel, 2024)", []Choice{
			{"smt", nil}, {"governor", nil}, {"mtu", nil}, {"numa", nil},
			{"socket-limits", nil}, {"socket-buffers", nil}, {"metrics-save", nil},
		}},
		{"kube-ovn", "Kube-OVN's page on performance tuning", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"governor", nil}, {"rings", nil}, {"irqbalance", nil}, {"irq", nil},
			{"ovn-lb", nil}, {"ovn-skip-conntrack", nil}, {"fastpath", nil}, {"ovs-module", nil},
			{"stt-tunnel", nil},
		}},
	}
}

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
