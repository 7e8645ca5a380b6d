// Package frame carries several streams and messages over one stream, between two programs of
// ours: those of a guest and its host, and of a pod and who runs a command in it. It knows none
// of their kinds of frames. Next: internal/agent/exec.go for the longer of the two lists.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A frame is one byte for its kind, the payload's length, big-endian, and the payload.
const (
	head  = 1 + 4
	Max   = 1 << 20  // bytes; the largest payload
	chunk = 32 << 10 // bytes of a stream in a frame
)

// ErrDamaged means that what came is no frame of the other side's program.
var ErrDamaged = errors.New("damaged stream")

// Writer writes frames; its methods may be called from several goroutines.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer of frames to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame, of at most Max.
func (f *Writer) Send(kind byte, payload []byte) error {
	b := make([]byte, head, head+len(payload))
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(append(b, payload...))
	return err
}

// Stream returns the frames of that kind as an io.Writer.
func (f *Writer) Stream(kind byte) io.Writer { return stream{f, kind} }

type stream struct {
	frames *Writer
	kind   byte
}

func (s stream) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := min(len(p)-done, chunk)
		if err := s.frames.Send(s.kind, p[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// Read reads one frame. The error is io.EOF if the stream ended before the frame,
// io.ErrUnexpectedEOF if it ended within the frame, and ErrDamaged if the length is above Max.
func Read(r io.Reader) (kind byte, payload []byte, err error) {
	var b [head]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(b[1:])
	if n > Max {
		return 0, nil, fmt.Errorf("%w: no frame: it begins with %q", ErrDamaged, b)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return b[0], payload, nil
}
