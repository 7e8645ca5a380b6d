package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Host and guest talk in frames over one virtio serial port: a byte for the
// kind, four for the length (big-endian), and the payload. One stream keeps
// the order of output and exit code.
type kind byte

const (
	// From the guest.
	kindHello  kind = 'H' // init runs and has opened the port
	kindStdout kind = 'o'
	kindStderr kind = 'e'
	kindExit   kind = 'x' // an ending, as JSON; nothing follows
	kindFailed kind = 'f' // init can't run the command: a sentence; nothing follows
	kindTaken  kind = 't' // a frame of input is with the command: the host may send one more

	// From the host.
	kindClock  kind = 'c' // the time: Unix nanoseconds, eight bytes; the command starts
	kindStdin  kind = 'i' // empty: end of file
	kindSignal kind = 's' // one byte: the number of a signal for the command
	kindSize   kind = 'w' // the terminal's rows and columns, two bytes each
)

// inputFrames is how many frames of input may be on their way. So few that the
// port has always room for a signal, however little the command reads.
const inputFrames = 4

// maxFrame bounds a payload, so that a damaged stream is noticed.
const maxFrame = 1 << 20

// ending is the payload of kindExit.
type ending struct {
	Code     int   `json:"code"`      // as a shell gives it: 128 + the signal's number
	OOMKills int64 `json:"oom_kills"` // processes that the guest's kernel ended for want of memory
}

// Size is that of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// frameWriter writes frames; it may be used by several goroutines.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) write(k kind, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	buf := make([]byte, 5, 5+len(payload))
	buf[0] = byte(k)
	binary.BigEndian.PutUint32(buf[1:], uint32(len(payload)))
	_, err := f.w.Write(append(buf, payload...))
	return err
}

// readFrame reads one frame; io.EOF means that the other side is gone.
func readFrame(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("frame %q of %d bytes: %w", head[0], n, errDamaged)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("frame %q: %w", head[0], err)
	}
	return kind(head[0]), payload, nil
}

// errDamaged is in the chain of the error for a stream that no guest of ours
// sends.
var errDamaged = errors.New("damaged stream")

// copyFrames sends what r gives as frames of that kind until it ends.
func (f *frameWriter) copyFrames(k kind, r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if werr := f.write(k, buf[:n]); werr != nil {
				return werr
			}
		}
		if err != nil {
			return err
		}
	}
}

// permitted reads the host's input, frame by frame, as the guest takes it.
type permitted struct {
	r      io.Reader
	tokens <-chan struct{} // one for each frame
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
