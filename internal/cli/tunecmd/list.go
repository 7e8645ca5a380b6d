package tunecmd

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune"
)

// List is `cnibench list tunings`.
func List(*run.Catalogue) ([][]string, any, error) {
	type value struct {
		settingValue
		Params   []tuneParam `json:"params"`
		Profiles []string    `json:"profiles"`
	}
	var rows [][]string
	var values []value
	for _, s := range tune.All() {
		v := value{settingValue: newSettingValue(s), Params: []tuneParam{}, Profiles: []string{}}
		var words []string
		for _, p := range s.Params {
			v.Params = append(v.Params, tuneParam{p.Name, p.Default, p.Help})
			words = append(words, p.Name+"="+p.Default)
		}
		for _, p := range tune.Profiles() {
			if slices.ContainsFunc(p.Choices, func(c tune.Choice) bool { return c.Setting == s.Name }) {
				v.Profiles = append(v.Profiles, p.Name)
			}
		}
		values = append(values, v)
		rows = append(rows, []string{s.Name, string(s.Scope), strings.Join(s.Studies, ", "), strings.Join(words, " "), s.Summary})
	}
	return rows, values, nil
}

type tuneParam struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

// settingValue is a setting as JSON shows it.
type settingValue struct {
	Name    string   `json:"name"`
	Scope   string   `json:"scope"`
	Summary string   `json:"summary"`
	Why     string   `json:"why"`
	Studies []string `json:"studies"`
	Source  string   `json:"source"`
	Cost    string   `json:"cost,omitempty"`
	Avoid   string   `json:"avoid,omitempty"`
}

func newSettingValue(s tune.Setting) settingValue {
	studies := s.Studies
	if studies == nil {
		studies = []string{}
	}
	return settingValue{
		Name: s.Name, Scope: string(s.Scope), Summary: s.Summary, Why: s.Why, Studies: studies, Source: s.Source,
		Cost: s.Cost, Avoid: s.Avoid,
	}
}
