package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sink serves on loopback until the test ends, and must then leave no goroutine.
func sink(t *testing.T) (*Sink, netip.AddrPort) {
	t.Helper()
	before := runtime.NumGoroutine()
	s, err := NewSink("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Errorf("%d goroutines, there were %d", runtime.NumGoroutine(), before)
				return
			}
		}
	})
	return s, netip.MustParseAddrPort(s.Addr().String())
}

func connect(t *testing.T, cfg Config) *Sender {
	t.Helper()
	s, err := Connect(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Each kind of stream carries something in each slice, over connections that stay
// open, and nothing between slices.
func TestSlices(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
	}{
		{"tcp", Config{Protocol: TCP}},
		{"tcp, three connections", Config{Protocol: TCP, Connections: 3}},
		{"tcp, zero copy", Config{Protocol: TCP, ZeroCopy: true}},
		{"tcp, small window", Config{Protocol: TCP, Window: 64 << 10, Size: 4 << 10}},
		{"udp", Config{Protocol: UDP, Rate: 50e6}},
		{"udp, two connections, as fast as possible", Config{Protocol: UDP, Connections: 2, Size: 500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, tt.cfg.Target = sink(t)
			s := connect(t, tt.cfg)
			var last counts
			// On a busy machine a slice may pass without a byte; such a slice proves nothing.
			for carried, tries := 0, 0; carried < 3; tries++ {
				if tries == 200 {
					t.Fatalf("%d of %d slices carried anything", carried, tries)
				}
				began, ended := 0, 0
				got, err := s.Slice(context.Background(), 5*time.Millisecond, 40*time.Millisecond, func() { began++ }, func() { ended++ })
				if err != nil {
					t.Fatal(err)
				}
				if got.Bytes > 0 {
					carried++
				}
				if got.Elapsed < 40*time.Millisecond || got.Interrupted || began != 1 || ended != 1 {
					t.Errorf("%+v, began %d, ended %d times", got, began, ended)
				}
				if tt.cfg.Protocol == TCP {
					sum := int64(0)
					for _, n := range got.Connections {
						sum += n
					}
					if len(got.Connections) != max(1, tt.cfg.Connections) || sum != got.Bytes {
						t.Errorf("connections %v of %d bytes", got.Connections, got.Bytes)
					}
				} else if got.Bytes != got.Packets*int64(s.cfg.Size) || !(got.Loss() >= 0 && got.Loss() < 1) {
					t.Errorf("%d bytes in %d packets, loss %v", got.Bytes, got.Packets, got.Loss())
				}
				idle, err := s.counts()
				if err != nil {
					t.Fatal(err)
				}
				if idle.Bytes < last.Bytes+got.Bytes {
					t.Errorf("%d bytes after a slice of %d, %d before", idle.Bytes, got.Bytes, last.Bytes)
				}
				last = idle
			}
			// What left the queue of the sender may still be under way for a moment.
			settled := func() bool {
				now, err := s.counts()
				if err != nil {
					t.Fatal(err)
				}
				same := now.Bytes == last.Bytes
				last = now
				return same
			}
			for tries := 0; !settled(); tries++ {
				if tries == 1000 {
					t.Fatal("bytes come between slices")
				}
			}
		})
	}
}

// Goodput is what the receiver read: a byte for each that a sender wrote, in total.
func TestEveryByteCounts(t *testing.T) {
	_, target := sink(t)
	s := connect(t, Config{Protocol: TCP, Target: target, Size: 1000})
	for tries := 0; ; tries++ {
		c, err := s.counts()
		if err != nil {
			t.Fatal(err)
		}
		if c.Bytes == 0 { // the sender may have had no CPU in a whole slice
			if _, err := s.Slice(context.Background(), 0, 10*time.Millisecond, nil, nil); err != nil {
				t.Fatal(err)
			}
			continue
		}
		sent := acked(t, s.threads[0].sender.(*blocks))
		if sent == c.Bytes {
			return
		}
		if tries == 1000 {
			t.Fatalf("%d bytes arrived, %d were acknowledged", c.Bytes, sent)
		}
		time.Sleep(time.Millisecond)
	}
}

// A context that ends cuts a slice short and says so.
func TestInterrupted(t *testing.T) {
	_, target := sink(t)
	s := connect(t, Config{Protocol: TCP, Target: target})
	ctx, cancel := context.WithCancel(context.Background())
	got, err := s.Slice(ctx, 0, time.Hour, cancel, nil)
	if err != nil || !got.Interrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

// What strangers send is not counted and breaks nothing.
func TestStrangers(t *testing.T) {
	_, target := sink(t)
	s := connect(t, Config{Protocol: UDP, Target: target, Rate: 1e6})
	for _, opening := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", dataKind + strings.Repeat("x", 12), "", strings.Repeat("\x00", 100)} {
		conn, err := net.Dial("tcp", target.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, opening); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite() // fails where the sink has ended the connection already
		if answer, _ := io.ReadAll(conn); len(answer) > 0 {
			t.Errorf("answer %q to %q", answer, opening)
		}
		_ = conn.Close()
	}
	stray, err := net.Dial("udp", target.String())
	if err != nil {
		t.Fatal(err)
	}
	defer stray.Close()
	for _, packet := range []string{"x", strings.Repeat("x", 100), string(s.token[:])} {
		if _, err := io.WriteString(stray, packet); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Slice(context.Background(), 0, 20*time.Millisecond, nil, nil); err != nil {
		t.Fatal(err)
	}
	if c, err := s.counts(); err != nil || c.Bytes != c.Packets*packetSize {
		t.Errorf("%+v, %v: packets of strangers count", c, err)
	}
}

// Planted losses, a packet that overtakes and jitter are found.
func TestFlows(t *testing.T) {
	var s session
	packet := func(connection uint32, sequence uint64, sent int64) []byte {
		b := make([]byte, headerSize)
		binary.BigEndian.PutUint32(b[8:], connection)
		binary.BigEndian.PutUint64(b[16:], sequence)
		binary.BigEndian.PutUint64(b[24:], uint64(sent))
		return b
	}
	for k, sequence := range []uint64{0, 1, 2, 5, 4, 9} { // 3, 6, 7 and 8 are lost
		s.count(packet(0, sequence, int64(k)*1000), int64(k)*1000+int64(k%2)*160)
	}
	s.count(packet(1, 0, 0), 5)
	s.count(packet(maxStream, 0, 0), 5)
	s.count(packet(2, math.MaxUint64, 0), 5)
	c := s.counts(time.Now())
	if c.Packets != 7 || c.Sent != 11 || c.Bytes != 7*headerSize {
		t.Errorf("%+v", c)
	}
	jitter := 0.0
	for range 5 {
		jitter += (160 - jitter) / 16
	}
	if diff := c.Jitter - jitter/2; math.Abs(diff) > 1e-9 {
		t.Errorf("jitter %v, want %v", c.Jitter, jitter/2)
	}
}

func TestConfig(t *testing.T) {
	target := netip.MustParseAddrPort("127.0.0.1:9")
	for name, cfg := range map[string]Config{
		"no protocol":     {Target: target},
		"no target":       {Protocol: TCP},
		"window of udp":   {Protocol: UDP, Target: target, Window: 1},
		"packet too big":  {Protocol: UDP, Target: target, Size: 70000},
		"packet too tiny": {Protocol: UDP, Target: target, Size: headerSize - 1},
		"connections":     {Protocol: TCP, Target: target, Connections: maxStream + 1},
		"negative":        {Protocol: TCP, Target: target, Wait: -1},
	} {
		if _, err := Connect(context.Background(), cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target = netip.MustParseAddrPort(free.Addr().String())
	_ = free.Close()
	if _, err := Connect(context.Background(), Config{Protocol: TCP, Target: target}); err == nil || errors.Is(err, ErrConfig) {
		t.Errorf("nobody listens: %v", err)
	}
}

// A server that is none of ours is named as such.
func TestNotASink(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var once sync.WaitGroup
	once.Go(func() {
		conn, err := other.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "220 ready\r\n")
		_ = conn.Close()
	})
	_, err = Connect(context.Background(), Config{Protocol: TCP, Target: netip.MustParseAddrPort(other.Addr().String())})
	if err == nil || !strings.Contains(err.Error(), "no answer, or none of `cnibench serve stream`") {
		t.Errorf("%v", err)
	}
	_ = other.Close()
	once.Wait()
}

func TestSliceFigures(t *testing.T) {
	s := Slice{Elapsed: 2 * time.Second, Bytes: 1e9, Packets: 99, Lost: 1}
	if diff := cmp.Diff([]float64{4e9, 0.01}, []float64{float64(s.Goodput()), s.Loss()}); diff != "" {
		t.Error(diff)
	}
	if (Slice{}).Goodput() != 0 || (Slice{}).Loss() != 0 {
		t.Error("an empty slice has figures")
	}
}
