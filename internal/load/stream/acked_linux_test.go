package stream

import (
	"testing"

	"golang.org/x/sys/unix"
)

// acked is how many bytes of blocks the receiver's kernel has acknowledged (TCP_INFO
// tcpi_bytes_acked), without the preamble and the SYN.
func acked(t *testing.T, b *blocks) int64 {
	t.Helper()
	info, err := unix.GetsockoptTCPInfo(b.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return int64(info.Bytes_acked) - preambleSize - 1
}
