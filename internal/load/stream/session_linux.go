package stream

import (
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// session counts the data of one Sender.
type session struct {
	ended chan struct{} // closed with the control connection

	mu          sync.Mutex
	streams     []*atomic.Int64 // bytes of each TCP connection
	flows       []flow          // UDP, by connection
	packets     int64           // UDP
	packetBytes int64
}

// counts returns the session's counts at this moment.
func (s *session) counts(since time.Time) counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := counts{At: int64(time.Since(since)), Packets: s.packets, Bytes: s.packetBytes}
	for _, stream := range s.streams {
		n := stream.Load()
		c.Connections, c.Bytes = append(c.Connections, n), c.Bytes+n
	}
	for _, f := range s.flows {
		c.Sent += f.sent
		c.Jitter += f.jitter / float64(len(s.flows))
	}
	return c
}

// receive counts the bytes of a data connection until the connection or its session
// ends. It reads with blocking calls on a thread of its own: Go's poller would need two
// more system calls for every pause.
func (s *session) receive(conn *net.TCPConn, window int) error {
	count := new(atomic.Int64)
	s.mu.Lock()
	if len(s.streams) >= maxStream {
		s.mu.Unlock()
		return fmt.Errorf("the session has %d connections, which is the most", maxStream)
	}
	position := len(s.streams)
	s.streams = append(s.streams, count)
	s.mu.Unlock()
	fd, err := dupBlocking(conn)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if window > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, window); err != nil {
			return err
		}
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.ended:
			hangUp(conn) // ends the read below
		case <-over:
		}
	}()
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	r := receiver{fd: fd, count: count, raw: position < maxRaw, maximum: maxLowWater}
	if window > 0 {
		r.maximum = min(r.maximum, window/4)
	}
	return r.receive()
}

// flow is one UDP connection as the Sink sees it.
type flow struct {
	sent    int64   // the highest sequence number plus one
	transit int64   // of the packet before, nanoseconds, by the clocks of both sides
	jitter  float64 // nanoseconds
}

// count counts a packet.
func (s *session) count(packet []byte, now int64) {
	connection := binary.BigEndian.Uint32(packet[8:])
	sequence := int64(binary.BigEndian.Uint64(packet[16:]))
	if connection >= maxStream || sequence < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for int(connection) >= len(s.flows) {
		s.flows = append(s.flows, flow{})
	}
	s.packets++
	s.packetBytes += int64(len(packet))
	f := &s.flows[connection]
	transit := now - int64(binary.BigEndian.Uint64(packet[24:]))
	if f.sent > 0 { // RFC 3550, section 6.4.1
		f.jitter += (float64(max(transit-f.transit, f.transit-transit)) - f.jitter) / 16
	}
	f.transit, f.sent = transit, max(f.sent, sequence+1)
}
