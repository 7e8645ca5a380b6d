package stream

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A receiver that is woken for much still counts the last bytes, and goes back to
// waiting: nothing stays behind the low-water mark.
func TestReceiverLeavesNothingBehind(t *testing.T) {
	for _, raw := range []bool{true, false} {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		var count atomic.Int64
		r := receiver{fd: ends[0], count: &count, raw: raw, maximum: maxLowWater}
		done := make(chan error, 1)
		go func() { done <- r.receive() }()
		block := make([]byte, 64<<10)
		sent := int64(0)
		write := func(b []byte) {
			if _, err := unix.Write(ends[1], b); err != nil {
				t.Fatal(err)
			}
			sent += int64(len(b))
		}
		for range 2 { // flow, then a rest that is far below any mark, then a pause
			for range 4 * readsToJudge {
				write(block)
			}
			write(block[:1])
			for until := time.Now().Add(10 * time.Second); count.Load() < sent && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			if got := count.Load(); got != sent {
				t.Errorf("raw %v: counted %d bytes of %d", raw, got, sent)
			}
		}
		if err := unix.Close(ends[1]); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = unix.Close(ends[0])
	}
}
