package tune

import (
	"slices"

	"github.com/cnibench/cnibench/internal/text"
)

//go:generate go test . -run TestPage -update

// All lists the settings in the order in which they are planned and applied. A setting
// that changes values of others comes before them. smt is last: the settings before it
// are planned for the CPUs that are online now, and prefer the first thread of each core.
func All() []Setting {
	return slices.Concat([]Setting{
		tuned, governor,
		rings, offloads,
		irqbalance, irq, rps, xps, rfs,
		schedMigrationCost,
	}, sysctls(), []Setting{brNetfilter, notrack, smt})
}

// Lookup finds a setting by name. It returns a *text.UnknownError if there is none.
func Lookup(name string) (Setting, error) {
	return text.Find("setting", name, All(), func(s Setting) string { return s.Name })
}
