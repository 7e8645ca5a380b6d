package tune

import (
	"slices"

	"github.com/cnibench/cnibench/internal/nearest"
)

//go:generate go test . -run TestPage -update

// All lists the settings in the order in which they are planned and applied:
// what changes others' values comes before them.
func All() []Setting {
	return slices.Concat([]Setting{
		smt, tuned, governor,
		rings, offloads, mtu,
		irqbalance, irq, rps, xps, rfs,
		serverThreads, numa, schedMigrationCost,
	}, sysctls(), []Setting{
		brNetfilter, notrack,
		ovnLoadBalancer, ovnSkipConntrack, fastPath, ovsModule, sttTunnel,
		tcpLowLatency, tcpTwRecycle,
	})
}

// Lookup finds a setting by name. Its error is a *nearest.Error.
func Lookup(name string) (Setting, error) {
	return nearest.Find("setting", name, All(), func(s Setting) string { return s.Name })
}
