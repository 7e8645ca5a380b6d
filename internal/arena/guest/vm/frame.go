package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Host and guest exchange frames over one virtio serial port: one byte for the kind, four for
// the length (big-endian), and the payload. Since there is one stream, the exit code comes
// after all output.
type kind byte

const (
	// From the guest.
	kindHello  kind = 'H' // init runs and has opened the port
	kindStdout kind = 'o'
	kindStderr kind = 'e'
	kindExit   kind = 'x' // an ending, as JSON; the last frame
	kindFailed kind = 'f' // init cannot run the command: the reason as text; the last frame
	kindTaken  kind = 't' // the command has read a frame of input: the host may send one more

	// From the host.
	kindClock  kind = 'c' // the time: Unix nanoseconds, eight bytes; then the command starts
	kindStdin  kind = 'i' // input; an empty payload is the end of file
	kindSignal kind = 's' // one byte: the number of a signal for the command
	kindSize   kind = 'w' // the terminal's rows and columns, two bytes each
)

// inputFrames is the largest number of unread frames of input. It is so small that the port
// always has room for a signal, even if the command reads nothing.
const inputFrames = 4

// maxFrame is the largest payload. A larger one means that the stream is damaged.
const maxFrame = 1 << 20

// ending is the payload of kindExit.
type ending struct {
	Code     int   `json:"code"`      // as in a shell: 128 + the number of the signal that ended it
	OOMKills int64 `json:"oom_kills"` // processes that the guest's kernel killed because memory ran out
}

// Size is the size of a terminal, in characters.
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

// readFrame reads one frame. It returns io.EOF if the other side is gone.
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

// errDamaged means that the stream does not come from our init.
var errDamaged = errors.New("damaged stream")

// copyFrames sends everything that r reads as frames of the kind.
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
