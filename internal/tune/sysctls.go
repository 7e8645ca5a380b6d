package tune

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/strictyaml"
)

//go:embed sysctls.yaml
var sysctlFile string

// key is a sysctl and the value that the study sets.
type key struct {
	name, value string
	// atLeast keeps a value that is at least as large.
	atLeast bool
}

// sysctls returns the settings of sysctls.yaml.
var sysctls = sync.OnceValue(func() []Setting {
	file := strictyaml.Must[struct {
		Sysctls []struct {
			Name    string   `yaml:"name"`
			Summary string   `yaml:"summary"`
			Why     string   `yaml:"why"`
			Study   string   `yaml:"study"`
			Source  string   `yaml:"source"`
			Cost    string   `yaml:"cost"`
			Avoid   string   `yaml:"avoid"`
			Scope   Scope    `yaml:"scope"`
			Keys    []string `yaml:"keys"`
		} `yaml:"sysctls"`
	}]("sysctls.yaml", sysctlFile)
	var list []Setting
	for _, r := range file.Sysctls {
		var keys []key
		for _, text := range r.Keys {
			name, value, ok := strings.Cut(text, "= ")
			if !ok {
				panic("sysctls.yaml: want NAME = VALUE or NAME >= VALUE, not " + text)
			}
			name, atLeast := strings.CutSuffix(name, ">")
			keys = append(keys, key{strings.TrimSpace(name), value, atLeast})
		}
		list = append(list, Setting{
			Name: r.Name, Summary: r.Summary, Why: r.Why, Studies: []string{r.Study}, Source: r.Source, Cost: r.Cost, Avoid: r.Avoid, Scope: r.Scope,
			Plan: func(f *Facts, _ Params) (Proposal, error) { return planKeys(f, keys) },
		})
	}
	return list
})

// planKeys plans the keys that the machine has. It returns a *NotApplicable if it has none.
func planKeys(f *Facts, keys []key) (Proposal, error) {
	var p Proposal
	var reason error
	for _, k := range keys {
		from, err := f.read(sysctl(k.name))
		if asNotApplicable(err) != nil {
			if reason != nil {
				continue
			}
			reason = err
			if f.m.Namespace {
				reason = notApplicable("a namespace has no %s of its own", k.name)
			}
			continue
		}
		if err != nil {
			return p, err
		}
		to, err := k.target(from)
		if err != nil {
			return p, err
		}
		p.Changes = append(p.Changes, Change{sysctl(k.name), from, to})
	}
	if len(p.Changes) == 0 {
		return p, reason
	}
	return p, nil
}

// target returns the value to set if the value is now. A * keeps the current number.
func (k key) target(now string) (string, error) {
	have, want := strings.Fields(now), strings.Fields(k.value)
	if len(have) == 0 { // an empty list, as in net.ipv4.ip_local_reserved_ports
		have = []string{""}
	}
	if len(have) > 1 && len(want) == 1 {
		want = strings.Split(k.value, ",") // with commas, as on a command line
	}
	if len(have) != len(want) {
		return "", fmt.Errorf("%s is %q; want %d numbers", k.name, now, len(want))
	}
	for i := range want {
		keep := want[i] == "*"
		if !keep && k.atLeast {
			h, err := strconv.ParseUint(have[i], 10, 64)
			if err != nil {
				return "", fmt.Errorf("%s is %q: %w", k.name, now, err)
			}
			w, err := strconv.ParseUint(want[i], 10, 64)
			if err != nil {
				return "", err
			}
			keep = h >= w
		}
		if keep {
			want[i] = have[i]
		}
	}
	return strings.Join(want, " "), nil
}

// movers lists keys that change other keys: each of a pair of vm clears the other, and
// those of net set the key of every interface.
var movers = []string{
	"vm.dirty_bytes", "vm.dirty_ratio",
	"vm.dirty_background_bytes", "vm.dirty_background_ratio",
	"vm.overcommit_kbytes", "vm.overcommit_ratio",
	"net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding",
	"net.ipv6.conf.all.forwarding", "net.ipv6.conf.all.disable_ipv6",
}

// Sysctl returns a setting for one kernel parameter of the user's own. It returns an error
// if the name or value is missing or wrong, or if Revert could not restore the key.
func Sysctl(name, value string) (Setting, error) {
	if name == "" || value == "" || strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
		return Setting{}, fmt.Errorf("sysctl %q=%q: want KEY=VALUE as in sysctl(8)", name, value)
	}
	if slices.Contains(movers, strings.ReplaceAll(name, "/", ".")) {
		return Setting{}, fmt.Errorf("sysctl %s: setting it changes other keys, too, which revert could not restore; note their values and set it with sysctl(8)", name)
	}
	scope := ScopeMachine
	if strings.HasPrefix(name, "net.") {
		scope = ScopeNamespace
	}
	return Setting{
		Name: name, Summary: name + " = " + value, Why: "asked for on the command line", Studies: []string{}, Source: "sysctl(8)", Scope: scope,
		Plan: func(f *Facts, _ Params) (Proposal, error) { return planKeys(f, []key{{name, value, false}}) },
	}, nil
}
