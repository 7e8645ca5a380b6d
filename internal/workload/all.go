package workload

import "github.com/cnibench/cnibench/internal/nearest"

// All lists the workloads, in the order of listings.
func All() []Workload {
	return []Workload{Idle{}, HTTPRate{}}
}

// Lookup finds a workload by name, or says the nearest one.
func Lookup(name string) (Workload, error) {
	var names []string
	for _, w := range All() {
		if w.Info().Name == name {
			return w, nil
		}
		names = append(names, w.Info().Name)
	}
	return nil, nearest.Unknown("workload", name, names)
}
