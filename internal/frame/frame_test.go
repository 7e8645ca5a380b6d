package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	long := strings.Repeat("0123456789abcdef", 5000) // several frames
	if _, err := io.Copy(w.Stream('o'), strings.NewReader(long)); err != nil {
		t.Fatal(err)
	}
	if err := w.Send('x', nil); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for {
		kind, payload, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if kind == 'x' {
			break
		}
		if kind != 'o' || len(payload) > chunk {
			t.Errorf("frame %q of %d bytes", kind, len(payload))
		}
		got.Write(payload)
	}
	if _, _, err := Read(&b); got.String() != long || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes of %d, then %v", got.Len(), len(long), err)
	}
	if _, _, err := Read(strings.NewReader("o\xff\xff\xff\xff")); !errors.Is(err, ErrDamaged) {
		t.Errorf("a length that no frame has: %v", err)
	}
	if _, _, err := Read(strings.NewReader("o\x00\x00\x00\x05hell")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that breaks off: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x05hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, payload, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := NewWriter(&again).Send(kind, payload); err != nil || !bytes.HasPrefix(data, again.Bytes()) {
			t.Errorf("%q was read from %q, and written as %q", payload, data, again.Bytes())
		}
	})
}
