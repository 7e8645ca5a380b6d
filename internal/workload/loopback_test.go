package workload

import (
	"bytes"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// localhost is an endpoint on this machine's loopback.
type localhost struct {
	host.Local
	name, dir string
}

func (l localhost) Name() string   { return l.name }
func (localhost) Node() string     { return "localhost" }
func (localhost) Addr() netip.Addr { return netip.MustParseAddr("127.0.0.1") }
func (l localhost) Dir() string    { return l.dir }
func (localhost) CPUs() []int      { return nil }

// loopback returns a session from this machine to itself. Its parameters are empty:
// set them with Complete. rawOf(s, name) reads what the workload kept. A test
// that looks at the marks sets Begin and End to those of a window of its own.
func loopback(t *testing.T) *Session {
	t.Helper()
	w := &window{}
	return &Session{
		Client: localhost{name: "client", dir: t.TempDir()}, Server: localhost{name: "server", dir: t.TempDir()},
		Target: netip.MustParseAddr("127.0.0.1"),
		Warmup: 200 * time.Millisecond, Duration: time.Second,
		Raw:   &memory{files: map[string]*bytes.Buffer{}},
		Begin: w.begin, End: w.end,
	}
}

// window counts the marks of a drive; two of a kind are a mistake.
type window struct {
	begins, ends []time.Time
}

func (w *window) begin() { w.begins = append(w.begins, time.Now()) }
func (w *window) end()   { w.ends = append(w.ends, time.Now()) }

// needPrograms skips a test whose programs are not installed, and fails it in CI.
func needPrograms(t *testing.T, w Workload) {
	t.Helper()
	if err := host.Have(programs.Workload(w.Info().Name)...); err != nil {
		needs.Missing(t, err.Error())
	}
}

// memory is a raw folder in memory.
type memory struct {
	mu    sync.Mutex
	files map[string]*bytes.Buffer
}

type memoryFile struct {
	m *memory
	b *bytes.Buffer
}

func (m *memory) Create(name string) (io.WriteCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &bytes.Buffer{}
	m.files[name] = b
	return memoryFile{m, b}, nil
}

func (f memoryFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.b.Write(p)
}

func (memoryFile) Close() error { return nil }

// rawOf returns what the drive wrote to the raw folder under that name.
func rawOf(s *Session, name string) string {
	m := s.Raw.(*memory)
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return ""
	}
	return b.String()
}
