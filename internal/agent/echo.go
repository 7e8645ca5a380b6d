package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// An echo sends back the bytes that it receives: over TCP and SCTP unchanged, over UDP
// with the first byte changed to reply. Two echoes that receive each other's datagrams
// therefore do not answer for ever.
const (
	question = '?' // asks for the whole datagram
	measure  = '#' // asks for the datagram's size only
	reply    = '!'
)

const (
	echoIdle   = 10 * time.Second // until a silent connection is closed
	portTrials = 20               // to find a port that is free for TCP and UDP
)

// echoes holds the listeners and connections of an agent.
type echoes struct {
	mu      sync.Mutex
	closers map[io.Closer]bool
	closed  bool
	running sync.WaitGroup
}

// listen opens a TCP and a UDP echo at the same port; 0 takes a free one.
func (e *echoes) listen(addr netip.AddrPort) (netip.AddrPort, error) {
	if !addr.Addr().IsValid() {
		return addr, errors.New("echo: no address given")
	}
	var err error
	for range portTrials {
		var at netip.AddrPort
		if at, err = e.listenAt(addr); err == nil || addr.Port() != 0 {
			return at, err
		}
	}
	return addr, err
}

func (e *echoes) listenAt(addr netip.AddrPort) (netip.AddrPort, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return addr, fmt.Errorf("echo: %w", err)
	}
	at := netip.AddrPortFrom(addr.Addr(), tcp.Addr().(*net.TCPAddr).AddrPort().Port())
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		tcp.Close()
		return addr, fmt.Errorf("echo: %w", err)
	}
	if !e.run(tcp, func() { e.acceptAll(tcp) }) || !e.run(udp, func() { echoDatagrams(udp) }) {
		return addr, errors.New("echo: the agent is ending")
	}
	return at, nil
}

// listenSCTP opens an SCTP echo.
func (e *echoes) listenSCTP(addr netip.AddrPort) (netip.AddrPort, error) {
	if !addr.Addr().IsValid() {
		return addr, errors.New("echo: no address given")
	}
	l, err := listenSCTP(addr)
	if err != nil {
		return addr, err
	}
	if !e.run(l, func() { e.acceptAll(l) }) {
		return addr, errors.New("echo: the agent is ending")
	}
	return l.Addr().(*net.TCPAddr).AddrPort(), nil
}

// run calls f, which serves c, in a goroutine. It returns false, and closes c, if the
// echoes were closed before.
func (e *echoes) run(c io.Closer, f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		c.Close()
		return false
	}
	if e.closers == nil {
		e.closers = make(map[io.Closer]bool)
	}
	e.closers[c] = true
	e.running.Go(func() {
		f()
		c.Close()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.closers, c)
	})
	return true
}

// close ends every listener and connection, and waits for them.
func (e *echoes) close() {
	e.mu.Lock()
	e.closed = true
	for c := range e.closers {
		c.Close()
	}
	e.mu.Unlock()
	e.running.Wait()
}

func (e *echoes) acceptAll(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // a single connection failed, or no descriptor is free for a moment
			time.Sleep(10 * time.Millisecond)
			continue
		}
		e.run(c, func() { echoStream(c) })
	}
}

func echoStream(c *net.TCPConn) {
	b := make([]byte, 32<<10)
	for {
		if err := c.SetDeadline(time.Now().Add(echoIdle)); err != nil {
			return
		}
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

func echoDatagrams(c *net.UDPConn) {
	b := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Any other error is an ICMP message for an earlier reply.
		if err != nil || n == 0 {
			continue
		}
		// The prober sees a lost reply as a timeout.
		switch b[0] {
		case question:
			b[0] = reply
			_, _ = c.WriteToUDPAddrPort(b[:n], from)
		case measure:
			if answer := answerSize(b[:n]); answer != nil {
				_, _ = c.WriteToUDPAddrPort(answer, from)
			}
		}
	}
}
