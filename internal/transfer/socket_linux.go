package transfer

import "golang.org/x/sys/unix"

// buffer is one of a socket's.
type buffer int

const (
	receiveBuffer buffer = unix.SO_RCVBUF
	sendBuffer    buffer = unix.SO_SNDBUF
)

// size is what was granted, bytes; 0 is unknown. The kernel reads back twice
// that, having doubled it for its own bookkeeping (socket(7)).
func (b buffer) size(fd uintptr) int {
	n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, int(b))
	if err != nil {
		return 0
	}
	return n / 2
}
