package tune

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/contender"
)

// Variant is a contender whose settings are applied after it is up.
type Variant struct {
	ID string // the contender's id, "+" and the setting
	Request
}

// Variants returns a contender with each setting alone and, if there are several, with all
// together.
func Variants(id string, req Request) []Variant {
	var list []Variant
	for _, c := range req.Settings {
		list = append(list, Variant{id + "+" + c.Setting, Request{Settings: []Choice{c}}})
	}
	for _, key := range slices.Sorted(maps.Keys(req.Sysctls)) {
		list = append(list, Variant{id + "+" + key, Request{Sysctls: map[string]string{key: req.Sysctls[key]}}})
	}
	if len(list) > 1 {
		list = append(list, Variant{id + "+all", req})
	}
	return list
}

// Contender returns c as this variant.
func (v Variant) Contender(c *contender.Contender) *contender.Contender {
	tuned := *c
	tuned.ID = v.ID
	tuned.Summary = c.ID + " with " + strings.Join(v.Names(), ", ")
	return &tuned
}

// NothingSet is the code of the note that says that a setting changed nothing.
const NothingSet = "nothing_set"
