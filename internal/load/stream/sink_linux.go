package stream

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sink receives the data of Senders, on a TCP and a UDP port of the same number.
type Sink struct {
	listener *net.TCPListener
	packets  *net.UDPConn
	started  time.Time

	mu       sync.Mutex
	sessions map[token]*session
}

// Limits on the memory and time that strangers can cost a Sink.
const (
	maxSessions      = 256
	preamblePatience = 5 * time.Second
)

// receiveBuffer is the receive buffer that the UDP socket asks for, bytes: a pause of the
// receiving thread then loses no packets. The kernel gives at most net.core.rmem_max.
const receiveBuffer = 8 << 20

// NewSink listens on address, host:port. Port 0 chooses a port that is free for both
// protocols. Call Serve to receive.
func NewSink(address string) (*Sink, error) {
	var failed error
	for range 8 { // the UDP port of a free TCP port may be taken
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("stream: %w", err)
		}
		at := listener.Addr().(*net.TCPAddr)
		packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port, Zone: at.Zone})
		if err == nil {
			_ = packets.SetReadBuffer(receiveBuffer) // best effort: packets that do not fit in the buffer count as lost
			return &Sink{listener: listener.(*net.TCPListener), packets: packets, started: time.Now(), sessions: map[token]*session{}}, nil
		}
		failed = errors.Join(err, listener.Close())
		if _, port, _ := net.SplitHostPort(address); port != "0" {
			break
		}
	}
	return nil, fmt.Errorf("stream: %w", failed)
}

// Addr is where the Sink listens, for both protocols.
func (s *Sink) Addr() net.Addr { return s.listener.Addr() }

// Serve receives until ctx ends; then every connection is closed and the error is nil.
func (s *Sink) Serve(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = s.listener.Close()
		_ = s.packets.Close()
	})
	defer stop()
	failed := make(chan error, 1)
	all.Go(func() { failed <- s.receivePackets() })
	for {
		conn, err := s.listener.AcceptTCP()
		if err != nil {
			over := ctx.Err() != nil
			cancel()
			if packetsErr := <-failed; !over {
				return fmt.Errorf("stream: %w", errors.Join(err, packetsErr))
			}
			return nil
		}
		all.Go(func() {
			// An error ends this connection only, which its sender notices.
			_ = s.take(ctx, conn)
		})
	}
}

// take serves one TCP connection until it ends.
func (s *Sink) take(ctx context.Context, conn *net.TCPConn) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { hangUp(conn) })()
	var preamble [preambleSize]byte
	if err := conn.SetReadDeadline(time.Now().Add(preamblePatience)); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, preamble[:]); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	switch kind := string(preamble[:4]); kind {
	case controlKind:
		return s.control(conn)
	case dataKind:
		session := s.session(token(preamble[4:12]))
		if session == nil {
			return errors.New("the session of this connection is unknown or over")
		}
		return session.receive(conn, int(binary.BigEndian.Uint32(preamble[12:])))
	default:
		return fmt.Errorf("a preamble %q of no known kind", kind)
	}
}

// control opens a session, which ends when the control connection does.
func (s *Sink) control(conn *net.TCPConn) error {
	var hello greeting
	_, _ = rand.Read(hello.Token[:]) // never fails
	session := &session{ended: make(chan struct{})}
	s.mu.Lock()
	if len(s.sessions) >= maxSessions {
		s.mu.Unlock()
		return fmt.Errorf("%d sessions are open, which is the most", maxSessions)
	}
	s.sessions[hello.Token] = session
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.sessions, hello.Token)
		s.mu.Unlock()
		close(session.ended)
	}()
	lines := json.NewEncoder(conn)
	if err := lines.Encode(hello); err != nil {
		return err
	}
	for requests := bufio.NewReaderSize(conn, 16); ; {
		if _, err := requests.ReadByte(); err != nil {
			return err
		}
		if err := lines.Encode(session.counts(s.started)); err != nil {
			return err
		}
	}
}

func (s *Sink) session(t token) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[t]
}

// receivePackets counts UDP packets until the socket is closed.
func (s *Sink) receivePackets() error {
	raw, err := s.packets.SyscallConn()
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	batch := newBatch(maxPacket)
	var last token
	var session *session
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, errno := batch.receive(int(fd))
			switch errno {
			case 0:
			case unix.EAGAIN:
				return false // Go's poller waits for more packets
			case unix.EINTR, unix.ECONNREFUSED:
				continue
			default:
				failed = errno
				return true
			}
			now := int64(time.Since(s.started))
			for _, packet := range batch.packets(n) {
				if len(packet) < headerSize {
					continue
				}
				if t := token(packet[:8]); session == nil || t != last {
					session, last = s.session(t), t
				}
				if session != nil { // nil: the token is of no session, or of one that is over
					session.count(packet, now)
				}
			}
		}
	})
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(failed, err)
}

// dupBlocking returns another descriptor of the connection, for blocking calls. The caller
// closes both the descriptor and conn.
func dupBlocking(conn syscall.Conn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(own uintptr) {
		// Both descriptors share the blocking mode, so conn must not be read or written from here on.
		if fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0); failed == nil {
			failed = unix.SetNonblock(fd, false)
		}
	})
	return fd, errors.Join(err, failed)
}

// hangUp ends both directions, so that a blocking read or write returns.
func hangUp(conn *net.TCPConn) {
	_ = conn.CloseRead() // fails if the peer has ended the connection, which is as good
	_ = conn.CloseWrite()
}
