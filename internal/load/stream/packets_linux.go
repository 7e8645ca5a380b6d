package stream

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// packets sends packets over a UDP socket.
type packets struct {
	fd       int
	batch    *batch
	raw      bool
	sequence uint64
	started  time.Time
	pace     time.Duration // between packets; 0 is none
	due      time.Time     // of the next packet
}

func newPackets(cfg Config, session token, connection int, raw bool) (sender, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(cfg.Target))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p := &packets{fd: -1, batch: newBatch(cfg.Size), raw: raw, started: time.Now()}
	if p.fd, err = dupBlocking(conn); err != nil {
		return nil, err
	}
	timeout := unix.NsecToTimeval(int64(stopPatience))
	if err := unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_SNDTIMEO", err), p.close())
	}
	if cfg.Rate > 0 {
		p.pace = time.Duration(float64(cfg.Size) * 8 * float64(cfg.Connections) / float64(cfg.Rate) * 1e9)
	}
	for _, packet := range p.batch.buffers {
		copy(packet, session[:])
		binary.BigEndian.PutUint32(packet[8:], uint32(connection))
	}
	return p, nil
}

func (p *packets) begin() { p.due = time.Now() }

// send sends the packets that are due, at most a batch; if none is due, it waits for the next.
func (p *packets) send() error {
	now, n := time.Now(), batchSize
	if p.pace > 0 {
		n = 0
		for ; n < batchSize && !p.due.After(now); n++ {
			p.due = p.due.Add(p.pace)
		}
		if n == 0 {
			time.Sleep(min(p.due.Sub(now), stopPatience))
			return nil
		}
	}
	for k := range n {
		packet := p.batch.buffers[k]
		binary.BigEndian.PutUint64(packet[16:], p.sequence+uint64(k))
		binary.BigEndian.PutUint64(packet[24:], uint64(now.Sub(p.started)))
	}
	sent, errno := p.batch.send(p.fd, n, p.raw)
	p.sequence += uint64(sent)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ECONNREFUSED: // the Sink refused an earlier packet
		return nil
	}
	return os.NewSyscallError("sendmmsg", errno)
}

func (p *packets) clocks() clocks { return clocks{} }

func (p *packets) queueLength() (int, error) {
	n, err := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ)
	return n, os.NewSyscallError("ioctl SIOCOUTQ", err)
}

func (p *packets) close() error { return unix.Close(p.fd) }
