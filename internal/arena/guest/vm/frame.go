package vm

import "io"

// The kinds of frames that host and guest exchange over one virtio serial port. Since there is
// one stream, the exit code comes after all output.
const (
	// From the guest.
	kindHello  = 'H' // init runs and has opened the port
	kindStdout = 'o'
	kindStderr = 'e'
	kindExit   = 'x' // an ending, as JSON; the last frame
	kindFailed = 'f' // init cannot run the command: the reason as text; the last frame
	kindTaken  = 't' // the command has read a frame of input: the host may send one more

	// From the host.
	kindClock  = 'c' // the time: Unix nanoseconds, eight bytes; then the command starts
	kindStdin  = 'i' // input; an empty payload is the end of file
	kindSignal = 's' // one byte: the number of a signal for the command
	kindSize   = 'w' // the terminal's rows and columns, two bytes each
)

// inputFrames is the largest number of unread frames of input. It is so small that the port
// always has room for a signal, even if the command reads nothing.
const inputFrames = 4

// ending is the payload of kindExit.
type ending struct {
	Code     int   `json:"code"`      // as in a shell: 128 + the number of the signal that ended it
	OOMKills int64 `json:"oom_kills"` // processes that the guest's kernel killed because memory ran out
}

// Size is the size of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// permitted reads the host's input, one frame for each token that the guest has sent.
type permitted struct {
	r      io.Reader
	tokens <-chan struct{} // one token for each frame
	stop   <-chan struct{}
}

func (p permitted) Read(b []byte) (int, error) {
	select {
	case <-p.tokens:
		return p.r.Read(b)
	case <-p.stop:
		return 0, io.EOF
	}
}
