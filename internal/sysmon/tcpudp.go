package sysmon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// protocolCounter is one counter of /proc/net/snmp or /proc/net/netstat.
type protocolCounter struct {
	protocol, name string // as in the file
	help           string
}

// snmpCounters are of IPv4 and, for TCP, of IPv6 too.
var snmpCounters = []protocolCounter{
	{"Ip", "ReasmReqds", "IPv4 fragments received that had to be put together"},
	{"Ip", "ReasmOKs", "IPv4 packets put together from fragments"},
	{"Ip", "ReasmFails", "IPv4 packets that could not be put together, because fragments were missing"},
	{"Ip", "FragCreates", "IPv4 fragments made of packets that were too large for the way on"},
	{"Tcp", "InSegs", "TCP segments received, also in error"},
	{"Tcp", "OutSegs", "TCP segments sent, without those sent again"},
	{"Tcp", "RetransSegs", "TCP segments sent again"},
	{"Tcp", "InErrs", "TCP segments received in error"},
	{"Tcp", "InCsumErrors", "TCP segments received with a wrong checksum"},
	{"Udp", "InDatagrams", "UDP datagrams delivered, IPv4"},
	{"Udp", "OutDatagrams", "UDP datagrams sent, IPv4"},
	{"Udp", "NoPorts", "UDP datagrams for a port where nobody listened, IPv4"},
	{"Udp", "InErrors", "UDP datagrams received and not delivered, full receive buffers included, IPv4"},
	{"Udp", "InCsumErrors", "UDP datagrams received with a wrong checksum, IPv4"},
	{"Udp", "RcvbufErrors", "UDP datagrams dropped because the socket's receive buffer was full, IPv4"},
	{"Udp", "SndbufErrors", "UDP datagrams not sent because the send buffer was full, IPv4"},
}

var tcpextCounters = []protocolCounter{
	{"TcpExt", "TCPTimeouts", "TCP retransmission timers that went off"},
	{"TcpExt", "TCPLostRetransmit", "TCP segments sent again that were lost again"},
	{"TcpExt", "TCPSynRetrans", "SYN and SYN/ACK segments sent again"},
	{"TcpExt", "TCPSpuriousRTOs", "TCP retransmission timeouts that turned out to be needless"},
	{"TcpExt", "TCPBacklogDrop", "TCP segments dropped because the socket's backlog was full"},
	{"TcpExt", "TCPRcvQDrop", "TCP segments dropped because the receive queue was full"},
	{"TcpExt", "IPReversePathFilter", "packets dropped by the reverse-path filter (rp_filter)"},
	{"TcpExt", "ListenOverflows", "connections dropped because the accept queue was full"},
	{"TcpExt", "ListenDrops", "connections dropped at a listening socket for any reason"},
}

func tcpudp() Sampler { return protocols("tcpudp", "net/snmp", snmpCounters) }

func tcpext() Sampler { return protocols("tcpext", "net/netstat", tcpextCounters) }

func protocols(name, file string, counters []protocolCounter) Sampler {
	metricOf := make(map[string]map[string]string)
	s := Sampler{Name: name, Scope: ScopePod}
	for _, c := range counters {
		m := Metric{Name: "node_netstat_" + c.protocol + "_" + c.name, Type: "counter",
			Help: c.help + "; of the recorder's own network namespace (/proc/" + file + ")."}
		s.Metrics = append(s.Metrics, m)
		if metricOf[c.protocol] == nil {
			metricOf[c.protocol] = make(map[string]string)
		}
		metricOf[c.protocol][c.name] = m.Name
	}
	s.sample = fromFile(file, func(r io.Reader, out *frame) error {
		return parseProtocols(r, metricOf, out)
	})
	return s
}

// parseProtocols reads /proc/net/snmp and /proc/net/netstat: a line of names,
// then a line of values, each begun by the protocol. metricOf gives the metric
// of a protocol and name; the others are passed over.
func parseProtocols(r io.Reader, metricOf map[string]map[string]string, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	if all == "" {
		return fmt.Errorf("empty")
	}
	for all != "" {
		var names, values string
		names, all, _ = strings.Cut(all, "\n")
		values, all, _ = strings.Cut(all, "\n")
		protocol, names, _ := strings.Cut(names, ":")
		sameProtocol, values, _ := strings.Cut(values, ":")
		if protocol != sameProtocol {
			return fmt.Errorf("names of %q are followed by values of %q", protocol, sameProtocol)
		}
		wanted := metricOf[protocol]
		for wanted != nil {
			var name, value string
			name, names = nextField(names)
			value, values = nextField(values)
			if (name == "") != (value == "") {
				return fmt.Errorf("%s: names and values differ in number", protocol)
			}
			if name == "" {
				break
			}
			if metric := wanted[name]; metric != "" {
				n, err := strconv.ParseUint(value, 10, 64)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", protocol, name, err)
				}
				out.add(metric, float64(n))
			}
		}
	}
	return nil
}

func nextField(s string) (field, rest string) {
	s = strings.TrimLeft(s, " ")
	field, rest, _ = strings.Cut(s, " ")
	return field, rest
}
