package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// talk gives an agent the text and returns its answers.
func talk(t *testing.T, s *server, out *bytes.Buffer, text string) []answer {
	t.Helper()
	s.out = out
	if err := s.serve(t.Context(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	var answers []answer
	for line := range strings.Lines(out.String()) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		answers = append(answers, a)
	}
	return answers
}

func TestMalformedRequests(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		id         uint64
		want       string
	}{
		{"no JSON", "hello", 0, "no request: invalid character"},
		{"no object", "[1]", 0, "no request: "},
		{"unknown key", `{"id":3,"op":"mark","extra":1}`, 3, `no request: json: unknown field "extra"`},
		{"two values", `{"id":3,"op":"mark"} {}`, 3, "more text after the value"},
		{"no operation", `{"id":4}`, 4, `unknown operation ""`},
		{"unknown operation", `{"id":5,"op":"marc"}`, 5, `unknown operation "marc"; did you mean "mark"?`},
		{"negative id", `{"id":-1,"op":"mark"}`, 0, "no request"},
		{"unknown argument", `{"id":6,"op":"echo","args":{"port":5}}`, 6, `arguments: json: unknown field "port"`},
		{"no arguments", `{"id":6,"op":"echo"}`, 6, "echo: no address given"},
		{"bad address", `{"id":7,"op":"hello","args":{"addr":"here"}}`, 7, "arguments: "},
		{"foreign address", `{"id":7,"op":"echo","args":{"addr":"192.0.2.1:0"}}`, 7, "echo: listen"},
		{"no target", `{"id":8,"op":"reach"}`, 8, "want an address and a port"},
		{"size", `{"id":8,"op":"reach","args":{"target":"127.0.0.1:9","size":5}}`, 8, "size 5: want 16 to 65507 bytes"},
		{"timeout", `{"id":8,"op":"reach","args":{"target":"127.0.0.1:9","timeout_ns":3600000000000}}`, 8, "timeout 1h0m0s: want at most 1m0s"},
		{"too long", strings.Repeat(" ", 3*maxLine) + `{"id":9,"op":"hello"}`, 0, "longer than 65536 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			// The last line lacks its line feed, and a blank one is nothing.
			answers := talk(t, newServer(nil, sysmon.ScopePod, nil), &out, tt.line+"\n\n"+`{"id":99,"op":"hello"}`)
			if len(answers) != 2 {
				t.Fatalf("answers %+v", answers)
			}
			bad, good := answers[0], answers[1]
			if bad.Error == "" {
				bad, good = good, bad
			}
			if bad.ID != tt.id || !strings.Contains(bad.Error, tt.want) {
				t.Errorf("answer %+v, want id %d and an error with %q", bad, tt.id, tt.want)
			}
			if good.ID != 99 || good.Error != "" {
				t.Errorf("the request after it: %+v", good)
			}
		})
	}
}

func TestServeEnds(t *testing.T) {
	t.Run("scope", func(t *testing.T) {
		if err := Serve(t.Context(), strings.NewReader(""), io.Discard, "x", nil); err == nil {
			t.Error("served")
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, w := io.Pipe()
		defer w.Close()
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := Serve(ctx, in, io.Discard, sysmon.ScopeNode, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("nobody reads the answers", func(t *testing.T) {
		in, w := io.Pipe()
		defer w.Close()
		r, out := io.Pipe()
		r.Close()
		go func() { _, _ = io.WriteString(w, `{"id":1,"op":"hello"}`+"\n") }()
		if err := Serve(t.Context(), in, out, sysmon.ScopeNode, nil); err == nil || !strings.Contains(err.Error(), "writing an answer") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("broken input", func(t *testing.T) {
		in, w := io.Pipe()
		w.CloseWithError(errors.New("torn"))
		if err := Serve(t.Context(), in, io.Discard, sysmon.ScopeNode, nil); err == nil || !strings.Contains(err.Error(), "reading requests: torn") {
			t.Errorf("error %v", err)
		}
	})
}

// silentPort returns a target that takes connections and datagrams and answers
// nothing.
func silentPort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	at := l.Addr().(*net.TCPAddr).AddrPort()
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if errors.Is(err, syscall.EADDRINUSE) { // somebody else's, for UDP
		return silentPort(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return at
}

func TestReach(t *testing.T) {
	var e echoes
	defer e.close()
	at, err := e.listen(netip.AddrPortFrom(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{minProbeSize, 1400, maxProbeSize} {
		got := reach(t.Context(), Probe{Target: at, Size: size, Timeout: 10 * time.Second})
		if err := got.Err(); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if got.TCP.RTT <= 0 || got.TCP.Connect <= 0 || got.UDP.RTT <= 0 {
			t.Errorf("%d bytes: times %+v", size, got)
		}
	}
	if _, err := e.listen(at); err == nil {
		t.Error("two echoes at one port")
	}
	e.close()
	if _, err := e.listen(netip.AddrPortFrom(loopback, 0)); err == nil {
		t.Error("an echo after the end")
	}

	// Port 1 is no port that another test is given, as the one above may be by now.
	got := reach(t.Context(), Probe{Target: netip.AddrPortFrom(loopback, 1), Size: 64, Timeout: 10 * time.Second})
	if got.TCP.Kind != Refused || got.UDP.Kind != Refused || got.Err() == nil {
		t.Errorf("a closed port: %+v", got)
	}
	silent := silentPort(t)
	got = reach(t.Context(), Probe{Target: silent, Size: 64, Timeout: 50 * time.Millisecond})
	if got.TCP.Kind != TimedOut || got.UDP.Kind != TimedOut {
		t.Errorf("a silent port: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	got = reach(ctx, Probe{Target: silent, Size: 64, Timeout: time.Minute}) // must not take a minute
	if got.TCP.Kind == Unasked || got.Err() == nil {                        // cancelled while it waits, or before it asked
		t.Errorf("cancelled: %+v", got)
	}
}

// TestEchoesDoNotTalk: an echo's reply is nothing that an echo answers.
func TestEchoesDoNotTalk(t *testing.T) {
	var e echoes
	defer e.close()
	at, err := e.listen(netip.AddrPortFrom(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 16)
	for _, send := range []string{"!reply", "?question"} {
		if _, err := c.Write([]byte(send)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != "!question" {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// FuzzServe gives the agent any text: it answers in JSON lines, and ends. What
// would open sockets, and the machine's /proc, are replaced.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"op":"hello","args":{"addr":"127.0.0.1"}}`,
		`{"id":1,"op":"record"}` + "\n" + `{"id":2,"op":"mark"}` + "\n" + `{"id":3,"op":"stop"}`,
		`{"id":1,"op":"reach","args":{"target":"127.0.0.1:9","size":64,"timeout_ns":1000}}`,
		`{"id":1,"op":"echo","args":{"addr":"[::1]:0"}}`,
		"{}\n\n[]\nnull\n\x00\xff",
	} {
		f.Add(seed)
	}
	proc := fstest.MapFS{"meminfo": {Data: []byte("MemTotal: 5 kB\n")}}
	f.Fuzz(func(t *testing.T, text string) {
		s := newServer(nil, sysmon.ScopeNode, nil)
		s.root.Proc = proc
		s.operations[opEcho] = with(func(_ context.Context, a echoArgs) (echoResult, error) { return echoResult{a.Addr}, nil })
		s.operations[opReach] = with(func(context.Context, Probe) (Reached, error) { return Reached{}, nil })
		s.operations[opWhole] = with(func(context.Context, SizeProbe) (Answer, error) { return Answer{}, nil })
		s.operations[opSegments] = with(func(context.Context, TCPProbe) (Segments, error) { return Segments{}, nil })
		s.operations[opSniff] = with(func(context.Context, Sniff) (none, error) { return none{}, nil })
		var out bytes.Buffer
		for _, a := range talk(t, s, &out, text) {
			if (a.Error == "") == (a.Result == nil) {
				t.Errorf("neither an error nor a result: %+v", a)
			}
		}
	})
}

// SCTP is echoed where the kernel has it, and said to be missing where not.
func TestEchoSCTP(t *testing.T) {
	c, ctx := start(t, here{t}, sysmon.ScopePod), t.Context()
	loopback := netip.MustParseAddr("127.0.0.1")
	free, err := c.Echo(ctx, loopback)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(loopback, free)
	if err := c.EchoSCTP(ctx, at); err != nil {
		if !strings.Contains(err.Error(), "this kernel has no SCTP") && !strings.Contains(err.Error(), "this needs Linux") {
			t.Fatal(err)
		}
		t.Skipf("%v; run the test in a guest: go test -c ./internal/agent && cnibench vm -- sh -c 'modprobe sctp && ./agent.test -test.run SCTP'", err)
	}
	r, err := c.Probe(ctx, Probe{Target: at, Protocol: "sctp"})
	if err != nil || r.SCTP.Kind != OK || r.TCP.Kind != Unasked || r.Err() != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = c.Probe(ctx, Probe{Target: netip.AddrPortFrom(loopback, 1), Protocol: "sctp"})
	if err != nil || r.SCTP.Kind != Refused || r.Err() == nil {
		t.Errorf("nobody listens: %+v, %v", r, err)
	}
	// TCP and UDP at the same port are others.
	if r, err = c.Probe(ctx, Probe{Target: at}); err != nil || r.Err() != nil || r.SCTP.Kind != Unasked {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a dead server's clients miss is no loss: the next mark says why it ended.
func TestMarkTellsOfADeadServer(t *testing.T) {
	s := newServer(nil, sysmon.ScopePod, nil)
	defer s.endServers()
	if _, err := s.record(t.Context(), none{}); err != nil {
		t.Fatal(err)
	}
	defer s.recorder.Stop()
	if _, err := s.mark(t.Context(), none{}); err != nil {
		t.Fatal(err)
	}
	s.background(func(ctx context.Context) error { <-ctx.Done(); return errors.New("ended as asked") })
	s.background(func(context.Context) error { return errors.New("unshare: refused") })
	for s.serverErr.Load() == nil { // if it stays, the test's own limit ends it
		time.Sleep(time.Millisecond)
	}
	if _, err := s.mark(t.Context(), none{}); err == nil || !strings.Contains(err.Error(), "unshare: refused") {
		t.Error(err)
	}
}
