package workload

import "github.com/cnibench/cnibench/internal/nearest"

// All lists the workloads in the order of listings.
func All() []Workload {
	return []Workload{
		Idle{},
		TCPStream{}, UDPStream{},
		TCPLat(), UDPLat(), TCPBW(), UDPBW(),
		HTTPRate{},
	}
}

// Lookup finds a workload by name. Its error is a *nearest.Error, which names
// the nearest one: wrong usage (exit 2).
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
