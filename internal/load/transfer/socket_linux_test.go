package transfer

import (
	"net"
	"testing"
)

// What the kernel grants is what was asked for, and not the double of it that
// it reads back.
func TestBuffers(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP(localhost.AsSlice())})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const asked = 100_000 // less than any machine's net.core.rmem_max
	for _, tt := range []struct {
		name string
		set  func(int) error
		b    buffer
	}{{"receive", conn.SetReadBuffer, receiveBuffer}, {"send", conn.SetWriteBuffer, sendBuffer}} {
		if err := tt.set(asked); err != nil {
			t.Fatal(err)
		}
		if u := udpOf(conn, tt.b); u == nil || u.Buffer != asked || !u.Small() {
			t.Errorf("%s: %+v", tt.name, u)
		}
	}
	if (*UDP)(nil).Small() || (&UDP{Buffer: udpWanted, Wanted: udpWanted}).Small() {
		t.Error("a buffer that is unknown, or as wanted, is small")
	}
}
