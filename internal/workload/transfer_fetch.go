package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/transfer"
)

// measure makes the file and fills the window with transfers of it.
func (m *move) measure(server *program, what []string) (*transfer.Report, error) {
	size, err := m.fitting(server, what)
	if err != nil {
		return nil, err
	}
	if err := m.put(size); err != nil {
		return nil, err
	}
	options := []string{"--duration", m.s.Duration.String()}
	if m.s.Params.Bool("verify") {
		options = append(options, "--verify", path.Join(m.client, "verify"))
	}
	return m.fetch(server, "client", what, m.s.Warmup, options, m.s.Begin, m.s.End)
}

// put makes the server's file, in the place of one that is there.
func (m *move) put(size int64) error {
	m.size = size
	file := path.Join(m.server, dataFile)
	err := m.ask(m.s.Server, "rm", "-f", file)
	if err == nil {
		err = m.ask(m.s.Server, m.self, "transfer", "file", "--bytes", strconv.FormatInt(size, 10), file)
	}
	if err != nil {
		return fmt.Errorf("the file at the server: %w", err)
	}
	return nil
}

// fetch runs `cnibench transfer` at the client, as role: what to fetch with,
// then its arguments. scp is warmed up, and its first byte waited for, once.
func (m *move) fetch(server *program, role string, what []string, warmup time.Duration, options []string, begin, end func()) (*transfer.Report, error) {
	switch {
	case m.firstByte > 0:
		warmup = 0
	case m.oneByte != "":
		options = append(options, "--one-byte", m.oneByte)
	}
	options = append(options, "--warmup", warmup.String())
	argv := slices.Concat([]string{m.self, "transfer", what[0], "--bytes", strconv.FormatInt(m.size, 10)}, options, what[1:])
	out, in := io.Pipe()
	client, err := m.startTo(in, m.s.Client, role, ".json", argv...)
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-client.exited:
		case <-server.exited:
			// The client says what it saw of that, for a moment.
			select {
			case <-client.exited:
			case <-time.After(transferGrace):
				m.kill()
			}
			<-client.exited
		}
		_ = in.Close() // never fails
	}()
	report, err := readTransfer(out, begin, end)
	// After a line that is none, the rest still has to be taken.
	_, _ = io.Copy(io.Discard, out)
	if failed := client.failure(); failed != nil {
		err = failed // that its report is missing is the consequence
		if said, found := lastWord(client.stderr.String()); found {
			err = fmt.Errorf("%s: %s", client.role, said) // its long command is a raw file
		}
	}
	if err != nil {
		return report, err
	}
	m.firstByte = max(m.firstByte, report.FirstByte)
	report.FirstByte = m.firstByte
	return report, nil
}

// lastWord is the error with which this program ended, from its standard error.
func lastWord(stderr string) (said string, found bool) {
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(line, "cnibench: "); ok {
			said, found = strings.TrimSpace(text), true
		}
	}
	return said, found
}

// transferGrace is how long one side may take to end after the other failed.
const transferGrace = 500 * time.Millisecond

// maxTransferLine is the longest line that `cnibench transfer` prints: a
// report of as many transfers as a long window can have.
const maxTransferLine = 64 << 20

// readTransfer reads what `cnibench transfer` prints, and calls begin and end
// as their events come. A begin without an end gets its end when the output
// ends.
func readTransfer(r io.Reader, begin, end func()) (*transfer.Report, error) {
	began, ended := false, false
	defer func() {
		if began && !ended {
			end()
		}
	}()
	var report *transfer.Report
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxTransferLine)
	for in.Scan() {
		var line struct {
			transfer.Event
			transfer.Report
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("output of the client: %w", err)
		}
		switch {
		case line.Event.Event == "begin" && !began:
			began = true
			begin()
		case line.Event.Event == "end" && began && !ended:
			ended = true
			end()
		case line.Schema == transfer.ReportSchema && ended && report == nil:
			report = &line.Report
		default:
			return nil, fmt.Errorf("output of the client: unexpected line %.80q", in.Text())
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("output of the client: %w", err)
	}
	if report == nil || len(report.Transfers) == 0 || !(report.Window > 0) {
		return nil, errors.New("output of the client: it ended without a result")
	}
	return report, nil
}

// lines keeps what a program prints, and says when its first line is whole.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	once  sync.Once
	first chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(string(p), "\n") {
		l.once.Do(func() { close(l.first) })
	}
	return l.text.Write(p)
}

// last returns the last line.
func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.text.String())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// await waits for the first line of a server.
func (l *lines) await(ctx context.Context, server *program) error {
	select {
	case <-l.first:
		return nil
	case <-server.exited:
		return fmt.Errorf("%s ended before it listened", server.role)
	case <-time.After(listenPatience):
		return fmt.Errorf("%s does not listen after %v", server.role, listenPatience)
	case <-ctx.Done():
		return ctx.Err()
	}
}
