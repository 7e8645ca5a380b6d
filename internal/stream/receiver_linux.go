package stream

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// receiver counts what comes over one TCP connection, on a thread of its own. While
// much comes it reads by raw calls, and has the kernel wake it for as much as comes in
// lowWaterTime (SO_RCVLOWAT): woken for every frame, both sides would use a third more
// CPU. It waits for the first byte by ordinary calls, which leave the processor to others.
type receiver struct {
	fd    int
	count *atomic.Int64
	raw   bool
	most  int // bytes for which it is woken at most

	flowing  bool
	lowWater int // bytes; 0 is the kernel's own, 1
	bytes    int // since begun, in as many reads
	reads    int
	begun    time.Time
}

const (
	lowWaterTime = 100 * time.Microsecond
	mostLowWater = 128 << 10
	readsToJudge = 256 // the rate by
)

// receive returns nil at the connection's end.
func (r *receiver) receive() error {
	buffer := make([]byte, mostLowWater)
	if r.raw {
		defer addProcessors(1)()
	}
	for {
		n, err := r.read(buffer)
		switch {
		case n > 0:
			r.count.Add(int64(n))
			err = r.flow(n)
		case errors.Is(err, unix.EAGAIN):
			err = r.pause()
		case errors.Is(err, unix.EINTR):
			continue
		case n == 0 && err == nil:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *receiver) read(buffer []byte) (int, error) {
	if !r.flowing || !r.raw {
		return unix.Read(r.fd, buffer)
	}
	n, errno := readRaw(r.fd, buffer)
	if errno != 0 {
		return -1, errno
	}
	return n, nil
}

// flow notes that so much came.
func (r *receiver) flow(n int) error {
	if !r.flowing {
		r.flowing, r.reads, r.bytes, r.begun = true, 0, 0, time.Now()
		return r.patience(stopPatience)
	}
	r.bytes, r.reads = r.bytes+n, r.reads+1
	if r.reads < readsToJudge {
		return nil
	}
	now := time.Now()
	rate := float64(r.bytes) / now.Sub(r.begun).Seconds()
	r.reads, r.bytes, r.begun = 0, 0, now
	return r.wakeFor(int(min(rate*lowWaterTime.Seconds(), float64(r.most))))
}

// pause goes back to waiting: nothing came for a while.
func (r *receiver) pause() error {
	r.flowing = false
	return errors.Join(r.wakeFor(0), r.patience(0))
}

// wakeFor sets the low-water mark, if it is far from what it is.
func (r *receiver) wakeFor(bytes int) error {
	if bytes > 0 && bytes < 2*r.lowWater && 2*bytes > r.lowWater || bytes == r.lowWater {
		return nil
	}
	r.lowWater = bytes
	return unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(1, bytes))
}

// patience is how long a read waits; 0 is for ever.
func (r *receiver) patience(d time.Duration) error {
	timeout := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
}
