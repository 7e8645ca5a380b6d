//go:build !linux

package transfer

type buffer int

const receiveBuffer, sendBuffer buffer = 0, 1

func (buffer) size(uintptr) int { return 0 }
