package stream

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is how many UDP packets one system call takes.
const batchSize = 32

// message is struct mmsghdr of sendmmsg(2) and recvmmsg(2).
type message struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

// batch holds the packets that one system call sends or receives.
type batch struct {
	messages [batchSize]message
	vectors  [batchSize]unix.Iovec
	buffers  [batchSize][]byte
}

// newBatch returns a batch of packets of size bytes.
func newBatch(size int) *batch {
	b := &batch{}
	for i := range b.messages {
		b.buffers[i] = make([]byte, size)
		b.vectors[i].Base = &b.buffers[i][0]
		b.vectors[i].SetLen(size)
		b.messages[i].Iov = &b.vectors[i]
		b.messages[i].SetIovlen(1)
	}
	return b
}

// receive receives the packets that have arrived, at most a batch, without waiting.
func (b *batch) receive(fd int) (n int, errno unix.Errno) {
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.messages)), batchSize, unix.MSG_DONTWAIT, 0, 0)
	return int(got), errno
}

// packets iterates over the first n packets.
func (b *batch) packets(n int) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i := range n {
			if !yield(i, b.buffers[i][:b.messages[i].length]) {
				return
			}
		}
	}
}

// send sends the first n packets, and waits while the send buffer is full. It returns
// how many it sent.
func (b *batch) send(fd, n int, raw bool) (sent int, errno unix.Errno) {
	call := unix.Syscall6
	if raw {
		call = unix.RawSyscall6
	}
	got, _, errno := call(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.messages)), uintptr(n), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}
