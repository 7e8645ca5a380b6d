package workload

// TCPCRR makes a TCP connection for every request.
func TCPCRR() RR {
	return RR{
		name:     "tcp_crr",
		summary:  "connect, one request, one response, close; connections per second and times with the handshake in them",
		exchange: "tcp-crr", protocol: "tcp", maximum: "64KiB",
	}
}
