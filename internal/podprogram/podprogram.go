// Package podprogram holds the program for pods of a cluster, ./pod, for each architecture
// that the build embedded: `make build` embeds this machine's own, a release both. Next: podprogram.go.
package podprogram

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// embedded has programs/linux-ARCH.gz for each architecture.
//
//go:embed all:programs
var embedded embed.FS

// Program is the program for the pods of one architecture.
type Program struct {
	Arch   string // as Go names it
	Gzip   []byte // the program, compressed
	Size   int64  // of the program itself, bytes
	SHA256 string // of the program itself, hexadecimal
	// Whole says that it is this very program, which is several times as large: the build
	// embedded none.
	Whole bool
}

// MissingError says that this build has no program for pods of that architecture.
type MissingError struct{ Arch string }

func (e *MissingError) Error() string {
	text := "this build of cnibench has no program for pods on linux/" + e.Arch + " nodes"
	if list := Architectures(); len(list) > 0 {
		text += ", only for " + strings.Join(list, " and ")
	}
	return text
}

// Remedy says what helps.
func (e *MissingError) Remedy() string {
	return "build it with `make build pods=" + e.Arch + "`, take a release, which has amd64 and arm64, or give an image with this program with --image"
}

// Architectures lists those that the build embedded.
func Architectures() []string {
	entries, _ := fs.ReadDir(embedded, "programs")
	var list []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".gz"); ok {
			list = append(list, strings.TrimPrefix(name, "linux-"))
		}
	}
	slices.Sort(list)
	return list
}

var (
	mu   sync.Mutex
	made = map[string]*Program{}
)

// For returns the program for pods on nodes of that architecture. Where the build
// embedded none, this very program does on machines of the same kind. The error is a
// *MissingError.
func For(arch string) (*Program, error) {
	mu.Lock()
	defer mu.Unlock()
	if p := made[arch]; p != nil {
		return p, nil
	}
	p, err := read(arch)
	if err != nil {
		return nil, err
	}
	made[arch] = p
	return p, nil
}

func read(arch string) (*Program, error) {
	packed, err := embedded.ReadFile("programs/linux-" + arch + ".gz")
	whole := errors.Is(err, fs.ErrNotExist)
	switch {
	case whole && runtime.GOOS == "linux" && runtime.GOARCH == arch:
		packed, err = own()
	case whole:
		err = &MissingError{arch}
	}
	if err != nil {
		return nil, err
	}
	p := &Program{Arch: arch, Gzip: packed, Whole: whole}
	r, err := p.Open()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	p.Size, err = io.Copy(sum, r)
	p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// Open returns the program as it is when unpacked.
func (p *Program) Open() (io.Reader, error) {
	r, err := gzip.NewReader(bytes.NewReader(p.Gzip))
	if err != nil {
		return nil, fmt.Errorf("the program for pods on %s: %w", p.Arch, err)
	}
	return r, nil
}

// own compresses this very program.
func own() ([]byte, error) {
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, f); err != nil {
		return nil, err
	}
	return packed.Bytes(), w.Close()
}
