package record

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/testutil/clocktest"
)

var secret = []byte("a token of enough bytes")

// linked are both ends of a connection that has been proved, and what crossed it.
func linked(t *testing.T, serverToken, clientToken []byte) (server, client *link, crossed *bytes.Buffer, serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	crossed = &bytes.Buffer{}
	var wg sync.WaitGroup
	wg.Go(func() {
		if server, serverErr = handshake(tapped{a, crossed}, serverSide, serverToken); serverErr != nil {
			a.Close()
		}
	})
	client, clientErr = handshake(b, clientSide, clientToken)
	wg.Wait()
	return
}

// tapped notes what crosses a connection.
type tapped struct {
	net.Conn
	seen *bytes.Buffer
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.seen.Write(p[:n])
	return n, err
}

func (c tapped) Write(p []byte) (int, error) {
	c.seen.Write(p)
	return c.Conn.Write(p)
}

func TestShake(t *testing.T) {
	_, _, crossed, serverErr, clientErr := linked(t, secret, secret)
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	for _, form := range []string{string(secret), base64.StdEncoding.EncodeToString(secret), base64.RawStdEncoding.EncodeToString(secret)} {
		if crossed.Len() == 0 || strings.Contains(crossed.String(), form) {
			t.Errorf("the token crossed the wire: %s", crossed)
		}
	}
	_, _, _, serverErr, clientErr = linked(t, secret, []byte("another token of bytes"))
	if !errors.Is(serverErr, ErrToken) || clientErr == nil {
		t.Errorf("a wrong token: %v, %v", serverErr, clientErr)
	}
}

// TestFalseServer is one without the token that answers with what it got.
func TestFalseServer(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		l := &link{conn: a}
		_ = l.write(hello{Version: linkVersion, Challenge: make([]byte, challengeSize)})
		buf := make([]byte, maxLine)
		n, _ := a.Read(buf)
		_, _ = a.Write(buf[:n])
	}()
	if _, err := handshake(b, clientSide, secret); !errors.Is(err, ErrToken) {
		t.Errorf("error %v", err)
	}
}

// Recorders of two versions say so, and which.
func TestOtherVersion(t *testing.T) {
	for own, version := range map[side]int{clientSide: linkVersion + 1, serverSide: linkVersion - 1} {
		a, b := net.Pipe()
		go func() {
			l := &link{conn: a, in: bufio.NewReader(a)}
			if own == serverSide {
				var theirs hello
				_ = l.read(&theirs)
			}
			_ = l.write(hello{Version: version, Challenge: make([]byte, challengeSize)})
		}()
		want := fmt.Sprintf("speaks version %d of the pairing, this one %d; use one release of cnibench on both", version, linkVersion)
		if _, err := handshake(b, own, secret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		_, _ = a.Close(), b.Close()
	}
}

// Refused clients are logged once a second by the steady clock, whatever is done to the
// machine's meanwhile.
func TestRefusalLogUsesTheSteadyClock(t *testing.T) {
	for name, step := range clocktest.Steps {
		for ago, lines := range map[time.Duration]int{0: 0, time.Minute: 1} {
			var said bytes.Buffer
			d := refusalLog{log: slog.New(slog.NewTextHandler(&said, nil)), logged: clocktest.Before(t, time.Now().Add(-ago), step)}
			d.add("a client", ErrToken)
			if n := strings.Count(said.String(), "\n"); n != lines {
				t.Errorf("clock %s, %v after the last: %d lines, want %d", name, ago, n, lines)
			}
		}
	}
}

// TestMessages: nobody on the way can change, repeat or turn round a message.
func TestMessages(t *testing.T) {
	server, client, crossed, serverErr, clientErr := linked(t, secret, secret)
	if err := errors.Join(serverErr, clientErr); err != nil {
		t.Fatal(err)
	}
	pass := func(m message) (message, error) {
		go func() { _ = client.send(m) }()
		return server.receive()
	}
	if m, err := pass(message{Op: opStart, StartOnly: true}); err != nil || m.Op != opStart || !m.StartOnly {
		t.Fatal(m, err)
	}
	lines := strings.SplitAfter(crossed.String(), "\n")
	start := lines[len(lines)-2]
	for name, line := range map[string]string{
		"repeated": start,
		"changed":  strings.Replace(start, opStart, opStop, 1),
		"no MAC":   `{"op":"stop"}` + "\n",
		"no JSON":  "stop\n",
		"too long": strings.Repeat("x", maxLine+1) + "\n",
	} {
		go func() { _, _ = client.conn.Write([]byte(line)) }()
		if m, err := server.receive(); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		}
		server.in.Reset(server.conn)
		if name == "too long" { // its rest is still on the way
			_, _ = io.CopyN(io.Discard, server.conn, 2)
		}
	}
	go func() { _ = server.send(message{Op: opRunning}) }()
	if m, err := client.receive(); err != nil || m.Op != opRunning {
		t.Fatal(m, err)
	}
	lines = strings.SplitAfter(crossed.String(), "\n")
	back := lines[len(lines)-2]
	go func() { _, _ = client.conn.Write([]byte(back)) }()
	if m, err := server.receive(); err == nil {
		t.Errorf("its own message was taken as the client's: %+v", m)
	}
}

func TestPairNeedsToken(t *testing.T) {
	var wrong *OptionError
	p := Pair{Role: Server, Address: "127.0.0.1:0"}
	if err := p.check(); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "head -c 32 /dev/urandom") {
		t.Errorf("error %v", err)
	}
	p.Token = []byte("short")
	if err := p.check(); !errors.As(err, &wrong) {
		t.Errorf("error %v", err)
	}
	if err := (&Pair{}).check(); err != nil {
		t.Error(err)
	}
}

// TestNobodyThere is a client whose server never listens.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	p := Pair{Role: Client, Address: address, Token: secret, Patience: 300 * time.Millisecond}
	if _, err := p.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "no server listens at") {
		t.Errorf("error %v", err)
	}
}

// FuzzHandshake: no text from a stranger may panic or be let in.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"cnibench_record":1,"challenge":"AAAA","proof":"AAAA"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, c := net.Pipe()
		defer a.Close()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, c) }()
			_, _ = c.Write(append(b, '\n'))
			c.Close()
		}()
		if _, err := handshake(a, serverSide, secret); err == nil {
			t.Fatal("a stranger was let in")
		}
	})
}
