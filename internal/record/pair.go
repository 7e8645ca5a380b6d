package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"
)

// Role is the recorder's part in a pair, and its label role.
type Role string

// A server waits for its client; the client's start and end are its own too.
const (
	Standalone Role = "standalone"
	Server     Role = "server"
	Client     Role = "client"
)

// Pair says with whom a recorder starts and ends.
type Pair struct {
	Role Role // "" is Standalone
	// Address is where a server listens, or whom a client connects to, with
	// the port.
	Address string
	Token   []byte // both sides' secret, at least MinToken bytes
	// StartOnly shares the start and not the end; one side is enough to ask.
	StartOnly bool
	Patience  time.Duration // how long a client tries to reach its server
}

func (p *Pair) role() Role {
	if p.Role == "" {
		return Standalone
	}
	return p.Role
}

func (p *Pair) check() error {
	if p.role() == Standalone {
		return nil
	}
	if len(p.Token) == 0 {
		return optionf(`recorders pair by a shared token, so that nobody else can start or stop a command here. Make one, copy it to both machines, and name it to both sides:
  (umask 077; head -c 32 /dev/urandom | base64 > record.token)
  cnibench record --token-file record.token …      (or its text in CNIBENCH_TOKEN)`)
	}
	if len(p.Token) < MinToken {
		return optionf("the token has %d bytes and needs at least %d: head -c 32 /dev/urandom | base64", len(p.Token), MinToken)
	}
	return nil
}

// peer is the other side during a run; a nil one is there when nobody is.
type peer struct {
	link      *link
	own       side
	startOnly bool
	messages  chan message // closed at the link's end
	hangUp    error        // then: why
	ended     chan struct{}
}

// meet waits for the client or connects to the server; both have then agreed
// to start. It is nil for a recorder alone.
func (p *Pair) meet(ctx context.Context, signals *signals, log *slog.Logger) (*peer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	met := make(chan struct{})
	defer close(met)
	go func() {
		select {
		case s := <-signals.c:
			cancel(fmt.Errorf("%v while waiting for the other side", s))
		case <-met:
		}
	}()
	var l *link
	var err error
	only := p.StartOnly
	switch p.role() {
	case Server:
		l, only, err = p.accept(ctx, log)
	case Client:
		l, err = p.connect(ctx)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	peer := &peer{link: l, own: l.to, startOnly: only || p.StartOnly, messages: make(chan message), ended: make(chan struct{})}
	go peer.listen()
	return peer, nil
}

// accept waits for the first client that has the token and says start. Others
// are told nothing.
func (p *Pair) accept(ctx context.Context, log *slog.Logger) (*link, bool, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, false, fmt.Errorf("pairing: %w; choose another address or port by --listen and --sync-port", err)
	}
	log.Info(fmt.Sprintf("waiting for a client at %v", listener.Addr()))
	type client struct {
		link *link
		only bool
	}
	clients := make(chan client)
	done := make(chan struct{})
	defer close(done)
	defer listener.Close()
	broken := make(chan error, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				broken <- err
				return
			}
			go func() {
				l, only, err := welcome(conn, p.Token)
				if err != nil {
					log.Warn(fmt.Sprintf("%v was turned away: %v", conn.RemoteAddr(), err))
					conn.Close()
					return
				}
				select {
				case clients <- client{l, only}:
				case <-done:
					conn.Close()
				}
			}()
		}
	}()
	select {
	case c := <-clients:
		return c.link, c.only, nil
	case err := <-broken:
		return nil, false, fmt.Errorf("pairing: %w", err)
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// welcome lets a client prove itself and say start.
func welcome(conn net.Conn, token []byte) (*link, bool, error) {
	l, err := shake(conn, serverSide, token)
	if err != nil {
		return nil, false, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, false, err
	}
	m, err := l.receive()
	if err == nil && m.Op != opStart {
		err = fmt.Errorf("%q instead of %q", m.Op, opStart)
	}
	if err != nil {
		return nil, false, err
	}
	return l, m.StartOnly, conn.SetReadDeadline(time.Time{})
}

// connect reaches the server, which may be about to start.
func (p *Pair) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Patience+handshakeTime)
	defer cancel()
	deadline := time.Now().Add(p.Patience)
	for {
		conn, err := (&net.Dialer{Timeout: handshakeTime}).DialContext(ctx, "tcp", p.Address)
		if err == nil {
			l, err := shake(conn, clientSide, p.Token)
			if err == nil {
				err = l.send(message{Op: opStart, StartOnly: p.StartOnly})
			}
			if err != nil {
				conn.Close()
				return nil, fmt.Errorf("pairing with %s: %w", p.Address, err)
			}
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("pairing with %s: %w", p.Address, context.Cause(ctx))
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("pairing: nobody waits at %s: %w; start the other side with --server and a --listen address that this machine reaches", p.Address, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (p *peer) listen() {
	defer close(p.messages)
	for {
		m, err := p.link.receive()
		if err != nil {
			p.hangUp = err
			return
		}
		select {
		case p.messages <- m:
		case <-p.ended:
			return
		}
	}
}

// ready makes a client wait until its server's command has started.
func (p *peer) ready(signals *signals) error {
	if p == nil || p.own == serverSide {
		return nil
	}
	select {
	case m, ok := <-p.messages:
		switch {
		case !ok && errors.Is(p.hangUp, io.EOF):
			return errors.New("the server ended before its command started; see its messages")
		case !ok:
			return fmt.Errorf("the server was lost before its command started: %w", p.hangUp)
		case m.Op == opFailed:
			return fmt.Errorf("the server's command did not start: %s", m.Error)
		}
		return nil
	case s := <-signals.c:
		return fmt.Errorf("%v while the server's command was awaited", s)
	}
}

// running tells a client that the server's command runs.
func (p *peer) running(log *slog.Logger) {
	if p != nil && p.own == serverSide {
		if err := p.link.send(message{Op: opRunning}); err != nil {
			log.Warn(fmt.Sprintf("the client could not be told that the command runs: %v", err))
		}
	}
}

// failed tells a client that it does not; a client that has gone needs no word.
func (p *peer) failed(err error) {
	if p != nil && p.own == serverSide {
		_ = p.link.send(message{Op: opFailed, Error: err.Error()})
	}
}

// stops says that the other side's end ends this side's command.
func (p *peer) stops() bool { return p != nil && p.own == serverSide && !p.startOnly }

// stopped is closed when a client has said stop, or was lost: then nobody else
// would end the server's command.
func (p *peer) stopped() <-chan struct{} {
	if !p.stops() {
		return nil
	}
	c := make(chan struct{})
	go func() {
		defer close(c)
		for m := range p.messages {
			if m.Op == opStop {
				return
			}
		}
	}()
	return c
}

// stop tells the server that the client's command has ended.
func (p *peer) stop(log *slog.Logger) {
	if p == nil || p.own == serverSide || p.startOnly {
		return
	}
	if err := p.link.send(message{Op: opStop}); err != nil && !errors.Is(err, os.ErrClosed) {
		log.Warn(fmt.Sprintf("the server had gone before the command's end: %v", err))
	}
}

func (p *peer) close() {
	if p != nil {
		close(p.ended)
		p.link.conn.Close()
	}
}
