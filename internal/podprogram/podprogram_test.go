package podprogram

import (
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
)

// There is always a program for machines of this machine's kind, and it unpacks to what
// its size says.
func TestFor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have only what the build embedded")
	}
	p, err := For(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || int64(len(text)) != p.Size || len(p.SHA256) != 64 {
		t.Errorf("%d bytes, size %d, digest %s: %v", len(text), p.Size, p.SHA256, err)
	}
	if p.Whole {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(self); err != nil || string(want) != string(text) {
			t.Errorf("it is not this program: %v", err)
		}
	} else if p.Size > 12_000_000 || len(p.Gzip) > 5_000_000 {
		t.Errorf("%d bytes, %d compressed: too large to carry", p.Size, len(p.Gzip))
	}
}

func TestForUnknown(t *testing.T) {
	_, err := For("s390x")
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Arch != "s390x" || missing.Remedy() == "" {
		t.Errorf("%v", err)
	}
}
