package unit

// Ceiling is the most goodput that a line rate carries: payload by frame, with
// the MTU of the underlay and the overhead of the encapsulation in bytes. A
// frame counts with its Ethernet header, as for a shaper or a veth; TCP has
// timestamps. 0 if the line rate or the MTU is unknown.
func Ceiling(line BitRate, mtu, overhead int, udp bool) BitRate {
	const ethernet, ip, tcpHeader, udpHeader = 14, 20, 32, 8
	headers := ip + tcpHeader + overhead
	if udp {
		headers = ip + udpHeader + overhead
	}
	if line <= 0 || mtu <= headers {
		return 0
	}
	return line * BitRate(mtu-headers) / BitRate(mtu+ethernet)
}
