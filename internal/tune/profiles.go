package tune

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/text"
)

// Choice is a setting with the parameters that differ from its defaults.
type Choice struct {
	Setting string `json:"setting"`
	Params  Params `json:"params,omitempty"`
}

// Profile is a list of settings for a purpose. ByHand names what serves the same purpose and
// cnibench does not set; docs/tuning.md says how to do it.
type Profile struct {
	Name    string
	Summary string
	Choices []Choice
	ByHand  []string
}

// Profiles lists the profiles. Settings are applied in the order of All.
func Profiles() []Profile {
	return []Profile{
		{"latency", "what shortens the way of a single packet", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"governor", nil}, {"irqbalance", nil}, {"irq", nil},
			{"slow-start-idle", nil},
		}, []string{numaPlacement, serverThreads}},
		{"throughput", "what moves more bytes for the same CPU", []Choice{
			{"tuned", Params{"profile": "network-throughput"}},
			{"governor", nil}, {"rings", nil}, {"offloads", nil},
			{"irqbalance", nil}, {"irq", nil}, {"xps", nil},
			{"socket-limits", nil}, {"socket-buffers", nil},
		}, []string{jumboFrames, numaPlacement}},
		{"study-2016", "tail latency at constant rates (Machine Zone, 2016), without what is harmful today", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"irqbalance", nil}, {"irq", nil}, {"rps", nil}, {"xps", nil},
			{"rfs", Params{"flows": "60000"}},
			{"sched-migration-cost", nil}, {"notrack", nil},
			{"file-max", nil}, {"local-ports", nil}, {"tw-buckets", nil}, {"tw-reuse", nil},
			{"fin-timeout", nil}, {"slow-start-idle", nil},
		}, []string{serverThreads}},
		{"study-2024", "the tuned variants of the 40 Gbit/s study (A. Ducastel, 2024)", []Choice{
			{"governor", nil}, {"socket-limits", nil}, {"socket-buffers", nil}, {"metrics-save", nil}, {"smt", nil},
		}, []string{jumboFrames, numaPlacement}},
		{"kube-ovn", "Kube-OVN's page on performance tuning", []Choice{
			{"tuned", Params{"profile": "network-latency"}},
			{"governor", nil}, {"rings", nil}, {"irqbalance", nil}, {"irq", nil},
		}, []string{"OVN's load balancer off", "OVN's connection tracking for some destinations off", "Kube-OVN's FastPath module", "Open vSwitch's module with popcnt", "STT tunnels"}},
	}
}

// What the profiles' purposes need and cnibench does not set.
const (
	jumboFrames   = "jumbo frames on the nodes' network"
	numaPlacement = "client and server on the interface's NUMA node"
	serverThreads = "one server worker a core"
)

// ByHand returns what the profiles' purposes need and cnibench does not set: for one
// profile, or for all if the name is "".
func ByHand(profile string) []string {
	var list []string
	for _, p := range Profiles() {
		for _, what := range p.ByHand {
			if (profile == "" || profile == p.Name) && !slices.Contains(list, what) {
				list = append(list, what)
			}
		}
	}
	return list
}

// LookupProfile finds a profile by name. It returns a *text.UnknownError if there is none.
func LookupProfile(name string) (Profile, error) {
	return text.Find("profile", name, Profiles(), func(p Profile) string { return p.Name })
}

// complete returns the parameters with the defaults added. It returns an error if a name is
// unknown.
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
			return nil, text.Unknown("parameter of "+s.Name, name, names)
		}
		all[name] = given[name]
	}
	return all, nil
}
