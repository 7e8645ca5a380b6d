package workload

// UDPRR asks and answers with datagrams.
func UDPRR() RR {
	return RR{
		name:     "udp_rr",
		summary:  "UDP requests and responses, one datagram under way on each socket; rate and round-trip times, lost ones count as failed",
		exchange: "udp-rr", protocol: "udp", most: "65507 bytes",
	}
}
