package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/load/transfer"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Transfer moves one large file repeatedly, from a server's memory to a client that
// discards it. HTTPGet, HTTPSGet, HTTP3Get, FTPGet and ScpCopy return one.
type Transfer struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string

	name, summary string
	size          string  // of the file, if the parameters do not say
	params        []Param // beside those of every transfer
	port          int     // the first port that is tried
	filePorts     []arena.Port
	// prepare writes the files of server and client into their folders and returns both
	// command lines.
	prepare func(m *transferDrive) (server, client []string, err error)
	// http3 says that the server is cnibench's own. It listens on UDP, prints a line when
	// it listens, and prints a report at its end.
	http3 bool
}

// Info implements Workload.
func (d Transfer) Info() Info {
	return Info{Name: d.name, Summary: d.summary, Params: append(transferParams(d.size), d.params...), Metrics: []string{result.Goodput, result.TimeToFirstByte, "transfers"}}
}

// transferDrive is one drive of a Transfer.
type transferDrive struct {
	*programGroup
	self           string
	size           int64          // of the file that is transferred
	fullSize       int64          // the size that the parameters ask for
	listen, target netip.AddrPort // the server's own address, and where the client reaches it
	server, client string         // folders at the endpoints; gone after the drive
	oneByte        string         // of scp: a file of one byte, whose copies are the warm-up
	firstByte      float64        // of scp: how long these copies took, s; 0 before the warm-up
	madeDirs       []string       // empty folders elsewhere at the server that prepare made
}

// transferParams returns the parameters of every workload that transfers a file.
func transferParams(size string) []Param {
	return []Param{
		{"size", size, "size of the file, which fits the endpoints' memory; one transfer should take a good part of a second, and less than the window. Where it would take more than 5 s, a half, a quarter … of it is moved"},
		{"verify", false, "before the window fetch the file once into the client's memory and compare every byte; the number of bytes is always checked"},
	}
}

// portText returns the port of an address as programs take it.
func portText(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }

// dataFile is the file's name at the server.
const dataFile = "data"

// Drive implements Workload. It transfers the file until the window is over.
func (d Transfer) Drive(ctx context.Context, s *Session) (out Outcome, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", d.name, err)
		}
	}()
	size, err := unit.ParseBytes(s.Params.String("size"))
	if err != nil {
		return out, fmt.Errorf("size: %w", err)
	}
	if size < 1 || size > 1<<40 {
		return out, fmt.Errorf("size: a file of %v; 1 byte to 1 TiB are possible", size)
	}
	m := &transferDrive{
		programGroup: newProgramGroup(ctx, s), self: d.Program, fullSize: int64(size),
		server: path.Join(s.Server.Dir(), "transfer"), client: path.Join(s.Client.Dir(), "transfer"),
	}
	if m.self == "" {
		if m.self, err = os.Executable(); err != nil {
			return out, fmt.Errorf("this program: %w", err)
		}
	}
	defer func() {
		// If ctx has ended, its error is the cause: it killed the programs, and their
		// own errors are consequences.
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the transfers did not end in time; give a smaller size: %w", ctx.Err())
		}
		err = errors.Join(err, m.stopAll(), m.clean())
	}()
	report, served, err := d.run(m)
	if err != nil {
		return out, err
	}
	return d.outcome(m, report, served)
}

// run starts the server and the client, and returns their reports.
func (d Transfer) run(m *transferDrive) (*transfer.Report, *transfer.Served, error) {
	if err := m.folders(); err != nil {
		return nil, nil, err
	}
	ports, err := freePorts(m.ctx, m.s.Server, d.port, 1)
	if err != nil {
		return nil, nil, err
	}
	m.listen = netip.AddrPortFrom(m.s.Server.Addr(), uint16(ports[0]))
	m.target = m.s.at(uint16(ports[0]))
	serve, fetch, err := d.prepare(m)
	if err != nil {
		return nil, nil, err
	}
	output := &lines{first: make(chan struct{})}
	server, err := m.startTo(output, m.s.Server, "server", ".txt", serve...)
	if err != nil {
		return nil, nil, err
	}
	if d.http3 {
		err = output.await(m.ctx, server)
	} else {
		err = awaitListening(m.ctx, m.s.Server, []*program{server}, ports)
	}
	var report *transfer.Report
	if err == nil {
		if report, err = m.measure(server, fetch); err != nil {
			// When a server dies, its client may fail before the server has ended.
			_ = m.await(time.Now().Add(transferGrace), server)
		}
	}
	// An error of the server may be the cause of the client's.
	if err = errors.Join(m.end(server), err); err != nil || !d.http3 {
		return report, nil, err
	}
	served := &transfer.Served{}
	if err := json.Unmarshal([]byte(output.last()), served); err != nil || served.Schema != transfer.ServedSchema {
		return report, nil, fmt.Errorf("the HTTP/3 server ended without a report; its last line is %.80q", output.last())
	}
	return report, served, nil
}

// maxGaps is the share of the window that may pass between transfers without
// a note.
const maxGaps = 0.1

// outcome returns the reports of the client and, for HTTP/3, of the server as the Outcome
// of a sample.
func (d Transfer) outcome(m *transferDrive, r *transfer.Report, served *transfer.Served) (Outcome, error) {
	out := Outcome{Metrics: map[string]float64{
		result.Goodput: r.Goodput(), result.TimeToFirstByte: r.TimeToFirstByte(), "transfers": float64(len(r.Transfers)),
	}, Pauses: r.Gaps()}
	note := func(code, text string) { out.Notes = append(out.Notes, result.Reason{Code: code, Text: text}) }
	if r.FileBytes != m.size || out.Metrics[result.TimeToFirstByte] <= 0 {
		return out, fmt.Errorf("the client reports a file of %d bytes, of %d, and %v s to the first byte",
			r.FileBytes, m.size, out.Metrics[result.TimeToFirstByte])
	}
	// Texts without figures, so that a report shows each once.
	if r.Gaps() > maxGaps {
		note("gaps_between_transfers", "more than a tenth of the window passed between transfers, while the next client started: goodput leaves that out, and CPU per Gbit is too low by up to that share; a larger size makes it smaller")
	}
	if m.size < m.fullSize {
		note("smaller_file", "one transfer of the whole file would take more than 5 s on this path: the largest half, quarter … of it was moved that takes less, and client.json says how large that is")
	}
	if r.FirstByte > 0 {
		note("first_byte_is_whole_copy", "neither scp nor ssh says when a first byte came: time_to_first_byte is that of a whole copy of one byte, the program's start, login and end included, and is not to be compared with that of another program")
	}
	if r.UDP.Small() {
		note("udp_buffer_small", "the kernel granted the HTTP/3 client a smaller receive buffer than quic-go asks for, which may lose packets; net.core.rmem_max=7500000 on the client's node would help, and client.json has the figures")
	}
	if served != nil && served.UDP.Small() {
		note("udp_buffer_small", "the kernel granted the HTTP/3 server a smaller send buffer than quic-go asks for, which may make it wait; net.core.wmem_max=7500000 on the server's node would help, and server.txt has the figures")
	}
	if served != nil && !served.GSO && m.s.Params.Bool("gso") {
		note("no_udp_gso", "the HTTP/3 server sent packet by packet: the kernel or the interface does not segment UDP (GSO)")
	}
	if served != nil && served.GSO && !m.s.Params.Bool("gso") {
		return out, errors.New("the HTTP/3 server used GSO, which it was told not to")
	}
	place, err := m.answer(m.s.Server, "stat", "-f", "-c", "%T", m.server) // the type of the file system
	if err != nil {
		return out, err
	}
	if place != "tmpfs" && place != "ramfs" {
		note("file_not_in_memory", "the server's folder is on "+place+" and not in memory: the file came from the page cache, as far as that held it")
	}
	return out, nil
}

// folders makes the folders of this drive at both endpoints. Only their owner can read
// them, because they will hold keys and passwords.
func (m *transferDrive) folders() error {
	for _, at := range m.places() {
		if err := m.ask(at.e, "sh", "-c", `umask 077 && rm -rf "$1" && mkdir -p "$1"`, "sh", at.dir); err != nil {
			return fmt.Errorf("make a folder at %s: %w", at.e.Name(), err)
		}
	}
	return nil
}

// cleanPatience is how long it may take to remove a large file on a busy machine.
const cleanPatience = 10 * time.Second

// clean removes the folders with everything that was made for this drive.
func (m *transferDrive) clean() error {
	m.ctx = context.WithoutCancel(m.ctx)
	var errs []error
	for _, at := range m.places() {
		ctx, cancel := context.WithTimeout(m.ctx, cleanPatience)
		errs = append(errs, askAt(ctx, at.e, "rm", "-rf", at.dir))
		cancel()
	}
	for _, dir := range m.madeDirs {
		ctx, cancel := context.WithTimeout(m.ctx, stopPatience)
		errs = append(errs, askAt(ctx, m.s.Server, "rmdir", dir))
		cancel()
	}
	return errors.Join(errs...)
}

type place struct {
	e   arena.Endpoint
	dir string
}

func (m *transferDrive) places() []place {
	return []place{{m.s.Server, m.server}, {m.s.Client, m.client}}
}

// ask runs a command to its end.
func (m *transferDrive) ask(e arena.Endpoint, argv ...string) error {
	return askAt(m.ctx, e, argv...)
}

// answer runs a command to its end and returns its standard output.
func (m *transferDrive) answer(e arena.Endpoint, argv ...string) (string, error) {
	out, err := host.Output(m.ctx, e, host.Command{Argv: argv, OffMeasuredCPUs: true})
	return strings.TrimSpace(string(out)), err
}

func askAt(ctx context.Context, e arena.Endpoint, argv ...string) error {
	_, err := host.Output(ctx, e, host.Command{Argv: argv, OffMeasuredCPUs: true})
	return err
}

// end ends the server. vsftpd exits because of the signal, so that exit code is fine.
func (m *transferDrive) end(server *program) error { return m.stop(server, 128+int(syscall.SIGTERM)) }
