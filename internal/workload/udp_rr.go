package workload

// UDPRR sends requests and responses as datagrams.
func UDPRR() RR {
	return RR{
		name:     "udp_rr",
		summary:  "UDP requests and responses, one datagram under way on each socket; rate and round-trip times; without an answer for 1 s it counts as failed",
		exchange: "udp-rr", protocol: "udp", maximum: "65507 bytes",
		// After a lost datagram its socket waits for this time.
		timeout: "1s",
	}
}
