package transfer

import "golang.org/x/sys/unix"

// buffer is a socket's buffer to send or to receive.
type buffer int

const (
	receiveBuffer buffer = unix.SO_RCVBUF
	sendBuffer    buffer = unix.SO_SNDBUF
)

// size returns the bytes that the kernel granted; 0 is unknown. The kernel doubles the
// size for its own bookkeeping and returns the doubled value (socket(7)).
func (b buffer) size(fd uintptr) int {
	n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, int(b))
	if err != nil {
		return 0
	}
	return n / 2
}
