package stream

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thread sends over one connection while a slice lasts.
type thread struct {
	sender sender
	start  chan struct{} // a value begins a slice; closing it ends the thread
	done   chan error    // the error of a slice, or nil, when it is over
	ended  chan error    // the error of closing the connection, or nil
}

func startThread(connection sender, stop *atomic.Bool) *thread {
	t := &thread{sender: connection, start: make(chan struct{}), done: make(chan error, 1), ended: make(chan error, 1)}
	go func() {
		// Never unlocked: the thread, with its timer slack, ends with the goroutine.
		runtime.LockOSThread()
		// Best effort: without it timers are coarser, and paced packets later.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		for range t.start {
			connection.begin()
			var err error
			for err == nil && !stop.Load() {
				err = connection.send()
			}
			t.done <- err
		}
		t.ended <- connection.close()
	}()
	return t
}

// Threads that send or receive make raw system calls, which Go's scheduler does not
// notice. During ordinary calls its monitor checks every 50 µs or so whether to give the
// waiting thread's processor to another thread. It did so on the CPU of the sending
// thread, which cost 9,000 switches a second and a third more CPU. A thread in a raw call
// keeps its processor, so GOMAXPROCS is raised by one for each such thread. A raw call
// must return soon, because the garbage collector waits for it to stop the world.

// maxRaw is how many threads of a process make raw calls; further threads make ordinary calls.
const maxRaw = 16

// addProcessors raises GOMAXPROCS by n, at most by maxRaw, until giveBack is called.
func addProcessors(n int) (giveBack func()) {
	n = min(n, maxRaw)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	return func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - n) }
}

// readRaw is read(2) as a raw call.
func readRaw(fd int, buffer []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
	return int(n), errno
}

// writeRaw is write(2) as a raw call.
func writeRaw(fd int, block []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&block[0])), uintptr(len(block)))
	return errno
}
