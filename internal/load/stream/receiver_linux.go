package stream

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// receiver counts the bytes of one TCP connection, on a thread of its own. It waits for
// the first byte with ordinary system calls, which leave Go's processor to others. While
// bytes flow it reads with raw calls, and the kernel wakes it only when as many bytes have
// arrived as usually do in lowWaterTime (SO_RCVLOWAT): if every frame woke it, both sides
// would use a third more CPU.
type receiver struct {
	fd      int
	count   *atomic.Int64
	raw     bool
	maximum int // bytes; the highest low-water mark

	flowing  bool
	lowWater int // bytes; 0 is the kernel's default, 1
	bytes    int // received since begun
	reads    int // since begun
	begun    time.Time
}

const (
	lowWaterTime = 100 * time.Microsecond
	maxLowWater  = 128 << 10
	readsToJudge = 256 // reads from one estimate of the rate to the next
)

// receive counts until the connection ends, and returns nil then.
func (r *receiver) receive() error {
	buffer := make([]byte, maxLowWater)
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
			err = r.stopFlowing()
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

// flow counts n received bytes, and adapts the low-water mark to the rate.
func (r *receiver) flow(n int) error {
	if !r.flowing {
		r.flowing, r.reads, r.bytes, r.begun = true, 0, 0, time.Now()
		return r.setReadTimeout(stopPatience)
	}
	r.bytes, r.reads = r.bytes+n, r.reads+1
	if r.reads < readsToJudge {
		return nil
	}
	now := time.Now()
	rate := float64(r.bytes) / now.Sub(r.begun).Seconds()
	r.reads, r.bytes, r.begun = 0, 0, now
	return r.setLowWater(int(min(rate*lowWaterTime.Seconds(), float64(r.maximum))))
}

// stopFlowing is called when nothing has arrived for a while: the next read waits.
func (r *receiver) stopFlowing() error {
	r.flowing = false
	return errors.Join(r.setLowWater(0), r.setReadTimeout(0))
}

// setLowWater sets the low-water mark, unless the current one is within a factor of two.
func (r *receiver) setLowWater(bytes int) error {
	if bytes > 0 && bytes < 2*r.lowWater && 2*bytes > r.lowWater || bytes == r.lowWater {
		return nil
	}
	r.lowWater = bytes
	return unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(1, bytes))
}

// setReadTimeout sets how long a read waits; 0 is for ever.
func (r *receiver) setReadTimeout(d time.Duration) error {
	timeout := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
}
