package transfer

import "golang.org/x/sys/unix"

// receiveBuffer is SO_RCVBUF as the kernel has it, bytes; 0 is unknown.
func receiveBuffer(fd uintptr) int {
	n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n
}
