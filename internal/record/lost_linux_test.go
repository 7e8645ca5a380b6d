package record

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLost: the other side's loss is a fault on both sides, said at once, and
// a server's command does not outlive it.
func TestLost(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if l, _, err := receiveStart(conn, secret); err == nil {
				_ = l.send(message{Op: opRunning})
			}
			conn.Close()
		}()
		// The command ends when its recorder has said that the server is lost.
		said := filepath.Join(t.TempDir(), "said")
		c := options(t, "sh", "-c", "until [ -e "+said+" ]; do sleep 0.02; done")
		c.Pair = Pair{Role: Client, Address: listener.Addr().String(), Token: secret, Patience: 20 * time.Second}
		wantLost(t, c, 0, "the server was lost at +", func() { _ = os.WriteFile(said, nil, 0o600) })
	})
	t.Run("client", func(t *testing.T) {
		address := freeAddress(t)
		go func() {
			p := Pair{Role: Client, Address: address, Token: secret, Patience: 20 * time.Second}
			if l, err := p.connect(t.Context()); err == nil {
				_, _ = l.receive()
				l.conn.Close()
			}
		}()
		s := options(t, "sleep", "1000")
		s.Pair = Pair{Role: Server, Address: address, Token: secret}
		wantLost(t, s, 130, "the client was lost at +", func() {})
	})
}

// wantLost calls said when the recorder says what is wanted.
func wantLost(t *testing.T, o Options, wantCode int, want string, said func()) {
	t.Helper()
	var log watched
	log.on = func(line []byte) {
		if bytes.Contains(line, []byte(want)) {
			said()
		}
	}
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	code, _, err := Run(t.Context(), o)
	if code != wantCode || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("code %d, error %v", code, err)
	}
	_, s := result(t, o)
	if len(s.Faults) != 1 || !strings.Contains(s.Faults[0], want) || !strings.Contains(log.String(), want) {
		t.Errorf("faults %q, log %s", s.Faults, &log)
	}
}

// watched is a buffer that shows each line as it comes.
type watched struct {
	bytes.Buffer
	on func(line []byte)
}

func (w *watched) Write(line []byte) (int, error) {
	w.on(line)
	return w.Buffer.Write(line)
}

// TestStopTakesAll: what a stopped server's shell has put in the background is
// deaf to SIGINT, and ended nevertheless.
func TestStopTakesAll(t *testing.T) {
	address := freeAddress(t)
	pid := filepath.Join(t.TempDir(), "pid")
	s, c := options(t, "sh", "-c", "sleep 1000 & echo $! >"+pid+"; wait"), options(t, "sleep", "0.3")
	s.Pair = Pair{Role: Server, Address: address, Token: secret}
	c.Pair = Pair{Role: Client, Address: address, Token: secret, Patience: 20 * time.Second}
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	var wg sync.WaitGroup
	wg.Go(func() {
		if code, _, err := Run(t.Context(), s); code != 0 || err != nil {
			t.Errorf("server: code %d, error %v", code, err)
		}
	})
	if code, _, err := Run(t.Context(), c); code != 0 || err != nil {
		t.Errorf("client: code %d, error %v", code, err)
	}
	wg.Wait()
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("it runs: %s", stat)
	}
	if !strings.Contains(log.String(), "left sleep (") {
		t.Errorf("log %s", &log)
	}
}

// TestCrowd: more strangers than are heard at once do not end the wait.
func TestCrowd(t *testing.T) {
	address := freeAddress(t)
	s, c := options(t, "true"), options(t, "true")
	s.Pair = Pair{Role: Server, Address: address, Token: secret}
	c.Pair = Pair{Role: Client, Address: address, Token: secret, Patience: 30 * time.Second}
	var wg sync.WaitGroup
	wg.Go(func() {
		if code, _, err := Run(t.Context(), s); code != 0 || err != nil {
			t.Errorf("server: code %d, error %v", code, err)
		}
	})
	for crowd := 0; crowd < 2*maxHandshakes; {
		conn, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		crowd++
	}
	if code, _, err := Run(t.Context(), c); code != 0 || err != nil {
		t.Errorf("client: code %d, error %v", code, err)
	}
	wg.Wait()
}

// TestAcceptHandsOver: a client's connection does not end with the wait for it.
func TestAcceptHandsOver(t *testing.T) {
	for range 300 {
		address := freeAddress(t)
		s := Pair{Role: Server, Address: address, Token: secret}
		c := Pair{Role: Client, Address: address, Token: secret, Patience: 20 * time.Second}
		var wg sync.WaitGroup
		var client *link
		var clientErr error
		wg.Go(func() { client, clientErr = c.connect(t.Context()) })
		server, _, err := s.accept(t.Context(), slog.New(slog.DiscardHandler))
		wg.Wait()
		if err := errors.Join(err, clientErr); err != nil {
			t.Fatal(err)
		}
		if err = server.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err == nil {
			_, err = server.receive()
		}
		client.conn.Close()
		server.conn.Close()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection that was handed over: %v", err)
		}
	}
}

// TestNohup runs itself below nohup, whose SIGHUP must reach nobody.
func TestNohup(t *testing.T) {
	if os.Getenv("RECORD_BELOW_NOHUP") != "" {
		o := options(t, "sh", "-c", "kill -HUP $PPID $$; sleep 0.1; exit 3")
		if code, _, err := Run(t.Context(), o); code != 3 || err != nil {
			t.Errorf("code %d, error %v", code, err)
		}
		return
	}
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip("no nohup; install coreutils")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nohup, self, "-test.run", "^TestNohup$", "-test.count=1")
	cmd.Env = append(os.Environ(), "RECORD_BELOW_NOHUP=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
