package workload

// TCPRR sends requests and responses over TCP connections that stay open.
func TCPRR() RR {
	return RR{
		name:     "tcp_rr",
		summary:  "requests and responses on open TCP connections, one under way on each; rate and round-trip times",
		exchange: "tcp-rr", protocol: "tcp", maximum: "64KiB",
	}
}
