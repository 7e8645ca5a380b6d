package workload

import "github.com/cnibench/cnibench/internal/arena"

// Serving is a workload whose server can stand behind a Service.
type Serving interface {
	// Ports returns the ports on which the server listens with those parameters.
	Ports(p Params) []arena.Port
}

// Ports implements Serving: every process of iperf3 has a port of its own.
func (TCPStream) Ports(p Params) []arena.Port { return iperf3Ports(p, arena.TCP) }

// Ports implements Serving: iperf3 talks TCP with its server before a UDP test.
func (UDPStream) Ports(p Params) []arena.Port { return iperf3Ports(p, arena.TCP, arena.UDP) }

// Ports implements Serving.
func (HTTPRate) Ports(p Params) []arena.Port { return onePort(p, arena.TCP) }

// Ports implements Serving.
func (w RR) Ports(p Params) []arena.Port {
	if w.protocol == "udp" {
		return onePort(p, arena.UDP)
	}
	return onePort(p, arena.TCP)
}

// Ports implements Serving: the server's port, and those that it opens for files.
func (d Transfer) Ports(Params) []arena.Port {
	protocol := arena.TCP
	if d.http3 {
		protocol = arena.UDP
	}
	return append(ports(protocol, d.port, 1), d.filePorts...)
}

func iperf3Ports(p Params, protocols ...string) []arena.Port {
	var all []arena.Port
	for i := range p.Int("streams") {
		for _, protocol := range protocols {
			all = append(all, arena.Port{Protocol: protocol, Number: uint16(iperf3Port + i)})
		}
	}
	return all
}

func onePort(p Params, protocol string) []arena.Port { return ports(protocol, p.Int("port"), 1) }

// ports returns n ports of the protocol, from first on.
func ports(protocol string, first, n int) []arena.Port {
	all := make([]arena.Port, n)
	for i := range all {
		all[i] = arena.Port{Protocol: protocol, Number: uint16(first + i)}
	}
	return all
}
