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

	"github.com/cnibench/cnibench/internal/load/transfer"
)

// measure makes the file and transfers it until the window is over. client is the program
// that transfers, and its arguments.
func (m *transferDrive) measure(server *program, client []string) (*transfer.Report, error) {
	size, err := m.chooseSize(server, client)
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
	return m.fetch(server, "client", client, m.s.Warmup, options, m.s.Begin, m.s.End)
}

// put makes the server's file and replaces an earlier one.
func (m *transferDrive) put(size int64) error {
	m.size = size
	file := path.Join(m.server, dataFile)
	err := m.ask(m.s.Server, "rm", "-f", file)
	if err == nil {
		err = m.ask(m.s.Server, m.self, "transfer", "file", "--bytes", strconv.FormatInt(size, 10), file)
	}
	if err != nil {
		return fmt.Errorf("make the file at the server: %w", err)
	}
	return nil
}

// fetch runs `cnibench transfer` at the client, as role. command is the program that
// transfers, and its arguments. The warm-up of scp measures the time to the first byte and
// is done only once.
func (m *transferDrive) fetch(server *program, role string, command []string, warmup time.Duration, options []string, begin, end func()) (*transfer.Report, error) {
	switch {
	case m.firstByte > 0:
		warmup = 0
	case m.oneByte != "":
		options = append(options, "--one-byte", m.oneByte)
	}
	options = append(options, "--warmup", warmup.String())
	argv := slices.Concat([]string{m.self, "transfer", command[0], "--bytes", strconv.FormatInt(m.size, 10)}, options, command[1:])
	out, in := io.Pipe()
	client, err := m.startTo(in, m.s.Client, role, ".json", argv...)
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-client.exited:
		case <-server.exited:
			// The client gets a moment to report what it saw.
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
	// After a line that can't be read, the rest must still be read, or the client blocks.
	_, _ = io.Copy(io.Discard, out)
	if failed := client.failure(); failed != nil {
		err = failed // the missing report is a consequence of this error
		if text, found := lastError(client.stderr.String()); found {
			err = fmt.Errorf("%s: %s", client.role, text) // without the long command, which is among the raw files
		}
	}
	if err != nil {
		return report, err
	}
	m.firstByte = max(m.firstByte, report.FirstByte)
	report.FirstByte = m.firstByte
	return report, nil
}

// lastError returns the last error that cnibench printed on its standard error.
func lastError(stderr string) (text string, found bool) {
	for line := range strings.Lines(stderr) {
		if rest, ok := strings.CutPrefix(line, "cnibench: "); ok {
			text, found = strings.TrimSpace(rest), true
		}
	}
	return text, found
}

// transferGrace is how long one side may take to end after the other has failed.
const transferGrace = 500 * time.Millisecond

// maxTransferLine is the longest line that `cnibench transfer` prints: a
// report of as many transfers as a long window can have.
const maxTransferLine = 64 << 20

// readTransfer reads the output of `cnibench transfer`, and calls begin and end at their
// events. If the output ends after begin and before end, it calls end then.
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
		return nil, errors.New("output of the client: it ended without a report")
	}
	return report, nil
}

// lines keeps the output of a program, and closes first when the first line is complete.
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
