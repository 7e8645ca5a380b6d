package workload

import "github.com/cnibench/cnibench/internal/text"

// All lists the workloads in the order of listings.
func All() []Workload {
	return []Workload{
		Idle{},
		TCPStream{}, UDPStream{}, TCPBulk(), UDPBulk(),
		TCPLat(), UDPLat(), TCPBW(), UDPBW(),
		HTTPRate{}, HTTPMax{},
		TCPRR(), TCPCRR(), UDPRR(), NewTCPRRLoaded(),
		HTTPGet(), HTTPSGet(), HTTP3Get(), FTPGet(), ScpCopy(),
	}
}

// Lookup finds a workload by name. Its error is a *text.UnknownError with the nearest
// name: wrong usage (exit 2).
func Lookup(name string) (Workload, error) {
	return text.Find("workload", name, All(), func(w Workload) string { return w.Info().Name })
}
