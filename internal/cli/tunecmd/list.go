package tunecmd

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/tune"
)

// List is `cnibench list tunings`.
func List() ([][]string, any, error) {
	type value struct {
		tune.Setting
		Params   []tune.Param `json:"params"`
		Profiles []string     `json:"profiles"`
	}
	var rows [][]string
	var values []value
	for _, s := range tune.All() {
		v := value{s, append([]tune.Param{}, s.Params...), []string{}}
		var words []string
		for _, p := range s.Params {
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
