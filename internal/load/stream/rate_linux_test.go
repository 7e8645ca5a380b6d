package stream

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/unit"
)

// What the kernel counts as sent over TCP at a rate is at most the rate, and what it sends
// before it paces: ten segments, and one more that may be under way, on each connection.
func TestRateCapsTCP(t *testing.T) {
	const rate, segment = 200e6, 64 << 10
	for _, connections := range []int{1, 3} {
		_, target := sink(t)
		begun := time.Now()
		s := connect(t, Config{Protocol: TCP, Target: target, Connections: connections, Rate: unit.BitRate(rate)})
		for range 3 {
			if _, err := s.Slice(context.Background(), 20*time.Millisecond, 150*time.Millisecond, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		sent, maximum := 0.0, float64(connections*11*segment)
		for _, thread := range s.threads {
			info, err := unix.GetsockoptTCPInfo(thread.sender.(*blocks).fd, unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			sent += float64(info.Bytes_sent)
		}
		maximum += rate / 8 * time.Since(begun).Seconds()
		if sent == 0 || sent > maximum {
			t.Errorf("%d connections sent %.0f bytes in %v; at most %.0f were asked for", connections, sent, time.Since(begun), maximum)
		}
	}
}
