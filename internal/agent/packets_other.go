//go:build !linux

package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// errNotHere says that a request needs Linux.
var errNotHere = errors.New("this needs Linux")

// sniffer is for Linux only.
type sniffer struct{}

func newSniffer(Sniff) (*sniffer, error)                   { return nil, errNotHere }
func (*sniffer) readCounts() (Sniffed, error)              { return Sniffed{}, errNotHere }
func (*sniffer) close()                                    {}
func probeSize(context.Context, SizeProbe) (Answer, error) { return Answer{}, errNotHere }
func segments(context.Context, TCPProbe) (Segments, error) { return Segments{}, errNotHere }

func listenSCTP(netip.AddrPort) (*net.TCPListener, error)        { return nil, errNotHere }
func dialSCTP(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errNotHere }
