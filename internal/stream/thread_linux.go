package stream

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Threads that send or receive make raw system calls, which Go's scheduler does not
// notice: else its monitor looks every 50 µs or so whether it must give the waiting
// thread's processor to another one, on the CPU on which the thread works, which made
// 9,000 switches a second and took a third more CPU. A raw call keeps its processor
// (GOMAXPROCS), so that each such thread is given one on top, and it must return soon:
// who stops the world waits for it.

// mostRaw is how many threads of a process make raw calls; others make ordinary ones.
const mostRaw = 16

// addProcessors gives n threads, as far as they make raw calls, a processor each until
// they are given back.
func addProcessors(n int) (giveBack func()) {
	n = min(n, mostRaw)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	return func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - n) }
}

// readRaw is read(2), by a raw call.
func readRaw(fd int, buffer []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
	return int(n), errno
}

// writeRaw is write(2), by a raw call.
func writeRaw(fd int, block []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&block[0])), uintptr(len(block)))
	return errno
}
