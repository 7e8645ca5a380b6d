package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/text"
)

const (
	maxLine     = 64 << 10 // bytes of a request
	maxRequests = 64       // carried out at the same time; further requests wait
)

// Serve answers the requests on in until in ends, then closes its echoes, sniffer and
// recording. Recordings have this scope and these labels. The answer to a line that is no
// request is an error. Serve returns an error if in or out fails, or when ctx ends; a
// goroutine may then still read in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, scope sysmon.Scope, labels map[string]string) error {
	if _, err := sysmon.ParseScope(string(scope)); err != nil {
		return err
	}
	return newServer(out, scope, labels).serve(ctx, in)
}

type operation func(ctx context.Context, args json.RawMessage) (any, error)

type server struct {
	operations map[string]operation
	root       sysmon.Root
	scope      sysmon.Scope
	labels     map[string]string
	echoes     echoes

	outMu sync.Mutex
	out   io.Writer

	sniffMu sync.Mutex
	sniffer *sniffer

	recMu    sync.Mutex
	recorder *sysmon.Recorder

	trialMu sync.Mutex
	trial   *holder
	program string // for holders

	serversMu sync.Mutex
	servers   []func()              // each ends one and waits for its end
	serverErr atomic.Pointer[error] // why the first of them ended before the agent
}

func newServer(out io.Writer, scope sysmon.Scope, labels map[string]string) *server {
	s := &server{root: sysmon.Machine(), scope: scope, labels: labels, out: out, program: ownProgram}
	s.operations = map[string]operation{
		opHello:  with(s.hello),
		opRecord: with(s.record),
		opMark:   with(s.mark),
		opStop:   with(s.stop),
		opEcho:   with(s.echo),
		opReach:  with(func(ctx context.Context, p Probe) (Reached, error) { return reach(ctx, p), nil }),

		opSniff:     with(s.sniff),
		opSniffed:   with(s.readSniffer),
		opWhole:     with(probeSize),
		opFragments: with(fragments),
		opSegments:  with(segments),

		opTraffic:  with(s.traffic),
		opTrips:    with(trips),
		opSnapshot: with(s.snapshot),
		opLookup:   with(lookup),
		opTry:      with(s.try),
		opUntry:    with(s.untry),
		opSettle:   with(s.settle),
		opBurst:    with(burst),
	}
	return s
}

// incomplete is implemented by arguments with defaults: complete fills these in and
// returns an error about a wrong value.
type incomplete interface{ complete() error }

// with returns f as an operation: it decodes and completes f's arguments.
func with[A, R any](f func(context.Context, A) (R, error)) operation {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args A
		if len(raw) > 0 {
			if err := decode(raw, &args); err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
		}
		if a, ok := any(&args).(incomplete); ok {
			if err := a.complete(); err != nil {
				return nil, err
			}
		}
		return f(ctx, args)
	}
}

// decode decodes a single JSON value without unknown keys.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the value")
	}
	return nil
}

func (s *server) serve(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var handlers errgroup.Group
	handlers.SetLimit(maxRequests)
	defer func() {
		cancel(nil)
		_ = handlers.Wait() // handlers return nil
		s.echoes.close()
		s.stopSniffing()
		s.endServers()
		_ = s.endTrial() // what is left is in the journal
		s.recMu.Lock()
		defer s.recMu.Unlock()
		if s.recorder != nil {
			s.recorder.Stop()
		}
	}()

	lines := make(chan []byte)
	read := make(chan error, 1)
	go func() { read <- readLines(ctx, in, lines) }()
	for {
		select {
		case line := <-lines:
			handlers.Go(func() error {
				if err := s.answer(ctx, line); err != nil {
					cancel(err)
				}
				return nil
			})
		case err := <-read:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readLines sends the lines of in, and nil for a line that is too long.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		line = bytes.TrimSpace(line)
		if tooLong || len(line) > 0 {
			sent := bytes.Clone(line)
			if tooLong {
				sent = nil
			}
			select {
			case lines <- sent:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading requests: %w", err)
		}
	}
}

// answer carries out the request in a line and writes the answer. It returns an error only
// if the answer can't be written.
func (s *server) answer(ctx context.Context, line []byte) error {
	a := answer{}
	result, err := s.carryOut(ctx, line, &a.ID)
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a.Result, a.Error = nil, err.Error()
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if _, err := s.out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	return nil
}

func (s *server) carryOut(ctx context.Context, line []byte, id *uint64) (any, error) {
	if line == nil {
		return nil, fmt.Errorf("the request is longer than %d bytes", maxLine)
	}
	var r request
	err := decode(line, &r)
	*id = r.ID
	if err != nil {
		return nil, fmt.Errorf("no request: %w", err)
	}
	f := s.operations[r.Op]
	if f == nil {
		return nil, text.Unknown("operation", r.Op, slices.Sorted(maps.Keys(s.operations)))
	}
	return f(ctx, r.Args)
}

var (
	errRecording    = errors.New("a recording runs already; stop it first")
	errNotRecording = errors.New("no recording runs; start one first")
)

type none struct{}

func (s *server) record(context.Context, none) (none, error) {
	s.recMu.Lock()
	defer s.recMu.Unlock()
	if s.recorder != nil {
		return none{}, errRecording
	}
	r, err := sysmon.Start(s.root, s.scope, s.labels)
	s.recorder = r
	return none{}, err
}

func (s *server) mark(context.Context, none) (timeResult, error) {
	s.recMu.Lock()
	defer s.recMu.Unlock()
	if s.recorder == nil {
		return timeResult{}, errNotRecording
	}
	at := timeResult{s.recorder.Mark()}
	if err := s.serverErr.Load(); err != nil { // what its clients miss is no loss
		return at, fmt.Errorf("a server of this agent has ended: %w", *err)
	}
	return at, nil
}

func (s *server) stop(context.Context, none) (*sysmon.Recording, error) {
	s.recMu.Lock()
	defer s.recMu.Unlock()
	if s.recorder == nil {
		return nil, errNotRecording
	}
	rec := s.recorder.Stop()
	s.recorder = nil
	return rec, nil
}

func (s *server) echo(_ context.Context, args echoArgs) (echoResult, error) {
	listen := s.echoes.listen
	if args.SCTP {
		listen = s.echoes.listenSCTP
	}
	addr, err := listen(args.Addr)
	return echoResult{addr}, err
}
