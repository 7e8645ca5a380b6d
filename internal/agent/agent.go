// Package agent is the part of cnibench that runs inside an endpoint, and the client
// that asks it to record, mark, echo and probe there. Requests and answers are JSON
// lines on the agent's standard input and output. An agent opens no control port,
// writes no file but a trial's journal, starts no process except the command of ServeExec
// and the one that takes a trial back, and ends with its standard input. Next: serve.go for the agent, client.go for the client.
package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// The operations.
const (
	opHello  = "hello"
	opRecord = "record"
	opMark   = "mark"
	opStop   = "stop"
	opEcho   = "echo"
	opReach  = "reach"

	opSniff    = "sniff"
	opSniffed  = "sniffed"
	opWhole    = "whole"
	opSegments = "segments"
)

// request is one line to the agent. Requests run at the same time: a client that needs
// them one after the other waits for each answer.
type request struct {
	ID   uint64          `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// answer is one line from the agent: a result or an error. ID is the request's; 0 if
// the request's could not be read.
type answer struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

type helloArgs struct {
	Addr netip.Addr `json:"addr"` // the zero Addr asks for no MTU
}

// Hello describes an agent and its network namespace.
type Hello struct {
	PID        int         `json:"pid"`
	Kernel     string      `json:"kernel"`               // uname -r
	MTU        int         `json:"mtu"`                  // bytes, of the interface with the address of the request; 0 without an address
	Congestion string      `json:"congestion,omitempty"` // net.ipv4.tcp_congestion_control in force; "" where there is none
	Interfaces []Interface `json:"interfaces"`
	// SoftnetDropped are the packets that the machine dropped since its start because a CPU's
	// backlog was full (/proc/net/softnet_stat).
	SoftnetDropped uint64 `json:"softnet_dropped,omitempty"`
}

// Interface is a network interface of the agent's namespace.
type Interface struct {
	Name  string         `json:"name"`
	MTU   int            `json:"mtu"` // bytes
	Up    bool           `json:"up"`
	Addrs []netip.Prefix `json:"addrs"`
}

type timeResult struct {
	Time time.Time `json:"time"`
}

type echoArgs struct {
	Addr netip.AddrPort `json:"addr"`           // port 0: any that is free
	SCTP bool           `json:"sctp,omitempty"` // over SCTP instead of TCP and UDP
}

type echoResult struct {
	Addr netip.AddrPort `json:"addr"`
}

// Probe is a question whether an echo answers over TCP and over UDP.
type Probe struct {
	Target netip.AddrPort `json:"target"`
	// Protocol is "tcp" or "udp" where only one is asked, or "sctp".
	Protocol string `json:"protocol,omitempty"`
	// Size is the payload's, in bytes, from 16 to 65,507; 0 is 64. The kernel may
	// fragment a payload that is larger than the MTU.
	Size int `json:"size,omitempty"`
	// Timeout bounds each protocol, a minute at most; 0 is a second. Over UDP one
	// datagram is sent and never repeated.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Payload follows the first byte, and random bytes follow Payload. A sniffer can
	// look for Payload as a marker.
	Payload []byte `json:"payload,omitempty"`
}

const (
	minProbeSize     = 16
	maxProbeSize     = 65507 // what a UDP datagram over IPv4 carries
	defaultProbeSize = 64

	defaultProbeTimeout = time.Second
	maxProbeTimeout     = time.Minute
)

func (p *Probe) complete() error {
	p.Size, p.Timeout = cmp.Or(p.Size, defaultProbeSize), cmp.Or(p.Timeout, defaultProbeTimeout)
	switch {
	case !p.Target.IsValid() || p.Target.Port() == 0:
		return fmt.Errorf("target %q: want an address and a port", p.Target)
	case p.Protocol != "" && p.Protocol != "tcp" && p.Protocol != "udp" && p.Protocol != "sctp":
		return fmt.Errorf("protocol %q: want tcp, udp, or none for both; or sctp", p.Protocol)
	case p.Size < minProbeSize || p.Size > maxProbeSize:
		return fmt.Errorf("size %d: want %d to %d bytes", p.Size, minProbeSize, maxProbeSize)
	case len(p.Payload) > p.Size-1:
		return fmt.Errorf("payload of %d bytes: it does not fit into %d", len(p.Payload), p.Size)
	case p.Timeout < 0 || p.Timeout > maxProbeTimeout:
		return fmt.Errorf("timeout %v: want at most %v", p.Timeout, maxProbeTimeout)
	}
	return nil
}

// Reached is what a probe found.
type Reached struct {
	TCP  Answer `json:"tcp"`
	UDP  Answer `json:"udp"`
	SCTP Answer `json:"sctp"`
}

// Answer is the outcome over one protocol.
type Answer struct {
	Kind    Kind          `json:"kind"`
	Detail  string        `json:"detail,omitempty"`     // the system's error if Kind is not OK
	Connect time.Duration `json:"connect_ns,omitempty"` // TCP's handshake
	RTT     time.Duration `json:"rtt_ns,omitempty"`     // from the send of the payload until all of it has come back
}

// Kind is the outcome of a probe, as a word that programs can compare.
type Kind string

// The kinds.
const (
	OK          Kind = "ok"
	Refused     Kind = "refused"     // nobody listens, or a firewall rejects
	TimedOut    Kind = "timeout"     // lost or dropped on the way, there or back
	Unreachable Kind = "unreachable" // no route, or no neighbour
	Reset       Kind = "reset"
	TooBig      Kind = "too-big" // larger than the MTU, with the don't-fragment bit
	Denied      Kind = "denied"  // the sender's own kernel forbids it
	Altered     Kind = "altered" // other bytes came back
	Other       Kind = "other"
	Unasked     Kind = "unasked" // the probe did not ask over this protocol
)

// Err returns nil if the echo answered over the protocols that were asked.
func (r Reached) Err() error {
	return errors.Join(r.TCP.err("TCP"), r.UDP.err("UDP"), r.SCTP.err("SCTP"))
}

func (a Answer) err(protocol string) error {
	if a.Kind == OK || a.Kind == Unasked || a.Kind == "" {
		return nil
	}
	return fmt.Errorf("%s: %s: %s", protocol, a.Kind, a.Detail)
}
