package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Role is the recorder's part in a pair, and the value of the label role.
type Role string

// A server waits for its client. Its command starts and ends with the client's.
const (
	Standalone Role = "standalone"
	Server     Role = "server"
	Client     Role = "client"
)

// Pair names the other recorder whose command starts and ends together with this one's.
type Pair struct {
	Role Role // "" is Standalone
	// Address, with the port, is where a server listens, or the server that a
	// client connects to.
	Address string
	Token   []byte // both sides' secret, at least MinToken bytes
	// StartOnly: only the start is shared, not the end. It applies to both sides if one
	// side sets it.
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

// peer is the other side during a run. A nil peer is no other side: the recorder
// runs alone.
type peer struct {
	link      *link
	own       side
	startOnly bool
	messages  chan message // closed at the link's end
	hangUp    error        // why the link ended, once messages is closed
	ended     chan struct{}
}

// meet waits for the client, or connects to the server. When it returns, both
// sides have agreed to start. A recorder without another side gets nil.
func (p *Pair) meet(ctx context.Context, signals *signals, log *slog.Logger) (*peer, error) {
	if p.role() == Standalone {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	met, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals.c:
			cancel(&interrupted{s, "while waiting for the other side"})
		case <-met:
		}
	}()
	var l *link
	var err error
	startOnly := p.StartOnly
	if p.role() == Server {
		l, startOnly, err = p.accept(ctx, log)
	} else {
		l, err = p.connect(ctx)
	}
	close(met)
	<-watched
	if err == nil && ctx.Err() != nil { // interrupted after the sides had met
		l.conn.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	peer := &peer{link: l, own: l.to, startOnly: startOnly || p.StartOnly, messages: make(chan message), ended: make(chan struct{})}
	go peer.listen()
	return peer, nil
}

// accept waits for the first client that has the token and sends start. Other clients get
// no answer. The bool is the client's StartOnly.
func (p *Pair) accept(ctx context.Context, log *slog.Logger) (*link, bool, error) {
	listener, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, false, fmt.Errorf("pairing: %w; choose another address or port by --listen and --sync-port", err)
	}
	log.Info(fmt.Sprintf("waiting for a client at %v", listener.Addr()))
	type client struct {
		link      *link
		startOnly bool
	}
	clients := make(chan client)
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer listener.Close()
	broken := make(chan error, 1)
	refusals := refusalLog{log: log}
	handshakes := make(chan struct{}, maxHandshakes)
	go func() {
		for {
			conn, err := listener.Accept()
			if temporary(err) {
				refusals.add("a client", err)
				select {
				case <-time.After(acceptPause):
				case <-ctx.Done():
				}
				continue
			}
			if err != nil {
				broken <- err
				return
			}
			select {
			case handshakes <- struct{}{}:
			default:
				refusals.add(conn.RemoteAddr(), fmt.Errorf("%d other clients are connecting at this moment; try again", maxHandshakes))
				conn.Close()
				continue
			}
			go func() {
				defer func() { <-handshakes }()
				keepOpen := context.AfterFunc(ctx, func() { conn.Close() })
				l, startOnly, err := receiveStart(conn, p.Token)
				if err != nil && ctx.Err() == nil {
					refusals.add(conn.RemoteAddr(), err)
				}
				if err == nil && keepOpen() {
					select {
					case clients <- client{l, startOnly}:
						return
					case <-ctx.Done():
					}
				}
				conn.Close()
			}()
		}
	}()
	select {
	case c := <-clients:
		return c.link, c.startOnly, nil
	case err := <-broken:
		return nil, false, fmt.Errorf("pairing: %w", err)
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// maxHandshakes is how many handshakes run at once, because each needs a descriptor.
const maxHandshakes = 16

// acceptPause is how long a server waits after a temporary error of Accept.
const acceptPause = 100 * time.Millisecond

// keepAlive notices within about half a minute that the other machine is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 6}

// temporary says whether a later Accept may succeed: the machine is short of descriptors
// or memory, or the client went away.
func temporary(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET},
		func(temporary error) bool { return errors.Is(err, temporary) })
}

// refusalLog logs clients that were refused, at most once a second.
type refusalLog struct {
	log      *slog.Logger
	mu       sync.Mutex
	logged   time.Time // time of the last message
	unlogged int       // refused clients since then
}

func (r *refusalLog) add(client any, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.logged) < time.Second {
		r.unlogged++
		return
	}
	others := ""
	if r.unlogged > 0 {
		others = fmt.Sprintf("; before it, %d others were refused", r.unlogged)
	}
	r.log.Warn(fmt.Sprintf("%v was refused: %v%s", client, reason, others))
	r.logged, r.unlogged = time.Now(), 0
}

// receiveStart checks that the client has the token, and waits for its start message.
func receiveStart(conn net.Conn, token []byte) (*link, bool, error) {
	l, err := handshake(conn, serverSide, token)
	if err != nil {
		return nil, false, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, false, err
	}
	m, err := l.receive()
	if err == nil && m.Op != opStart {
		err = fmt.Errorf("the client sent the message %q where %q is due; run the same version of cnibench on both sides", m.Op, opStart)
	}
	if err != nil {
		return nil, false, err
	}
	return l, m.StartOnly, conn.SetReadDeadline(time.Time{})
}

// connect connects to the server. It retries for p.Patience, because the server may start
// after the client.
func (p *Pair) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Patience+handshakeTime)
	defer cancel()
	deadline := time.Now().Add(p.Patience)
	for {
		l, connected, err := p.sendStart(ctx)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("pairing with %s: %w", p.Address, context.Cause(ctx))
		case connected && (!errors.Is(err, errHungUp) || time.Now().After(deadline)):
			return nil, fmt.Errorf("pairing with %s: %w", p.Address, err)
		case !connected && time.Now().After(deadline):
			return nil, fmt.Errorf("pairing: no server listens at %s: %w; start the other side with --server and a --listen address that this machine reaches", p.Address, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sendStart connects to the server and sends start. connected says whether the connection
// was made, even if a later step failed.
func (p *Pair) sendStart(ctx context.Context) (l *link, connected bool, err error) {
	conn, err := (&net.Dialer{Timeout: handshakeTime, KeepAliveConfig: keepAlive}).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, false, err
	}
	keepOpen := context.AfterFunc(ctx, func() { conn.Close() })
	defer keepOpen()
	if l, err = handshake(conn, clientSide, p.Token); err == nil {
		err = l.send(message{Op: opStart, StartOnly: p.StartOnly})
	}
	if err != nil {
		conn.Close()
	}
	return l, true, err
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
		p.startOnly = p.startOnly || m.StartOnly
		return nil
	case s := <-signals.c:
		return &interrupted{s, "while the server's command was awaited"}
	}
}

// tellRunning tells a client that the server's command runs.
func (p *peer) tellRunning(log *slog.Logger) {
	if p != nil && p.own == serverSide {
		if err := p.link.send(message{Op: opRunning, StartOnly: p.startOnly}); err != nil {
			log.Warn(fmt.Sprintf("the client could not be told that the command runs: %v", err))
		}
	}
}

// tellFailed tells a client that the server's command did not start. It is no error if the
// client has gone.
func (p *peer) tellFailed(err error) {
	if p != nil && p.own == serverSide {
		_ = p.link.send(message{Op: opFailed, Error: err.Error()})
	}
}

// endsCommand says whether the end of the other side's command ends this side's command.
func (p *peer) endsCommand() bool { return p != nil && p.own == serverSide && !p.startOnly }

// receive returns a channel of the other side's messages while the command runs. It is
// closed if the connection is lost, and nil if the other side's end does not matter.
func (p *peer) receive() <-chan message {
	if p == nil || p.startOnly {
		return nil
	}
	return p.messages
}

// announceEnd tells the other side that this side's command has ended.
func (p *peer) announceEnd(c *command) {
	switch {
	case p == nil || c.peerLost != nil || c.peerEnded:
	case p.own == clientSide && !p.startOnly:
		err := p.link.send(message{Op: opStop})
		if err == nil {
			return
		}
		// If the server's command ended at the same time, the server has sent opEnded.
		if m, ok := <-p.messages; !ok || m.Op != opEnded {
			c.peerLost = fmt.Errorf("the server was lost before the command's end: %w", err)
			c.faults = append(c.faults, c.peerLost.Error())
		}
	case p.own == serverSide && !c.stopped && c.err == nil:
		_ = p.link.send(message{Op: opEnded, Code: c.code}) // it is no error if the client has gone
	}
}

func (p *peer) close() {
	if p != nil {
		close(p.ended)
		p.link.conn.Close()
	}
}
