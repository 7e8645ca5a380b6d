package transfer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// Content reads n bytes that no compression makes smaller. The bytes at an offset are
// the same for every n and on every machine.
func Content(n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte([]byte("cnibench: the file of transfers."))), n)
}

// Write writes the content of n bytes to a new file. It leaves no holes: the kernel would
// read them from one page that never leaves the cache.
func Write(path string, n int64) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			remove(path)
			err = fmt.Errorf("a file of %d bytes: %w", n, err)
		}
	}()
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, Content(n), make([]byte, 1<<20))
	return err
}

// Check compares a file with the content of n bytes.
func Check(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.Size() != n {
		return wrongSize(info.Size(), n)
	}
	got, want := bufio.NewReaderSize(f, 1<<20), bufio.NewReaderSize(Content(n), 1<<20)
	for at := int64(0); at < n; {
		a, err := got.Peek(int(min(64<<10, n-at)))
		if err != nil {
			return err
		}
		b, err := want.Peek(len(a))
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("other bytes arrived than were sent, within %d bytes from byte %d on", len(a), at)
		}
		_, _ = got.Discard(len(a)) // peeked at
		_, _ = want.Discard(len(a))
		at += int64(len(a))
	}
	return nil
}

func wrongSize(got, want int64) error {
	return fmt.Errorf("%d bytes arrived instead of %d", got, want)
}

// remove removes a file. It is no error if there is none.
func remove(path string) { _ = os.Remove(path) }
