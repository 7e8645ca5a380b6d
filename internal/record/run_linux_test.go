package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// options record this machine, cheaply, into a folder of the test's own.
func options(t *testing.T, argv ...string) Options {
	dir := t.TempDir()
	return Options{
		Command: argv, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		File: filepath.Join(dir, "r.om.zst"), Summary: filepath.Join(dir, "s.json"),
		Samplers: sysmon.Samplers(), Root: sysmon.Machine(), Log: slog.New(slog.DiscardHandler),
	}
}

// result is the recording and the summary that a run has written.
func result(t *testing.T, o Options) (*sysmon.Recording, Summary) {
	t.Helper()
	b, err := os.ReadFile(o.File)
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	text, err := os.ReadFile(o.Summary)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return read(t, b, compressedName(o.File)), s
}

// TestRun: whatever becomes of the command, the recording is there.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "data")
	if err := os.WriteFile(notExecutable, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	noInterpreter := filepath.Join(dir, "script")
	if err := os.WriteFile(noInterpreter, []byte("#!/no/such/program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	noFormat := filepath.Join(dir, "text")
	if err := os.WriteFile(noFormat, []byte("echo hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+dir)
	for _, tt := range []struct {
		name string
		argv []string
		code int
		err  string
	}{
		{"done", []string{"true"}, 0, ""},
		{"failed", []string{"sh", "-c", "exit 42"}, 42, ""},
		{"ended by a signal", []string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		{"not found", []string{"cnibench-no-such-program"}, 127, "not found"},
		{"path not found", []string{"/no/such/program"}, 127, "not found"},
		{"a folder", []string{dir}, 126, "permission denied"},
		{"not executable", []string{notExecutable}, 126, "permission denied"},
		{"not executable on PATH", []string{"data"}, 126, "permission denied"},
		{"no interpreter", []string{noInterpreter}, 126, "no such file"},
		{"unknown format", []string{noFormat}, 126, "its first line should be #!"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.argv...)
			code, _, err := Run(t.Context(), o)
			if code != tt.code || err != nil {
				t.Errorf("code %d, error %v, want %d", code, err, tt.code)
			}
			rec, s := result(t, o)
			if s.ExitCode != tt.code || !strings.Contains(s.Error, tt.err) || (s.Error == "") != (tt.err == "") {
				t.Errorf("summary: code %d, error %q", s.ExitCode, s.Error)
			}
			if len(rec.Times) < 4 || rec.Labels["instance"] != tt.argv[0] || rec.Labels["role"] != "standalone" {
				t.Errorf("%d snapshots, labels %v", len(rec.Times), rec.Labels)
			}
		})
	}
}

// TestRunRecords looks at what is in the file, and when.
func TestRunRecords(t *testing.T) {
	o := options(t, "sh", "-c", "read a; echo got $a; sleep 0.5")
	var out bytes.Buffer
	o.Stdin, o.Stdout = strings.NewReader("this\n"), &out
	o.Instance, o.Labels = "mine", map[string]string{"env": "test"}
	o.Begin = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Before, o.After = 200*time.Millisecond, 100*time.Millisecond
	o.File = strings.TrimSuffix(o.File, ".om.zst") + ".prom"
	if code, _, err := Run(t.Context(), o); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if out.String() != "got this\n" {
		t.Errorf("the command said %q", &out)
	}
	rec, s := result(t, o)
	if since := rec.Times[0].Sub(o.Begin); since < 0 || since > time.Minute {
		t.Errorf("the first snapshot is at %v", rec.Times[0])
	}
	if rec.Labels["instance"] != "mine" || rec.Labels["env"] != "test" || rec.Labels["job"] != "cnibench" {
		t.Errorf("labels %v", rec.Labels)
	}
	if s.Begin.Sub(rec.Times[0]) < o.Before || s.Seconds < 0.3 || rec.Times[len(rec.Times)-1].Sub(s.End) < o.After {
		t.Errorf("began at %v, ended at %v, recorded at %v", s.Begin, s.End, rec.Times)
	}
	used, err := window{s.Begin, s.End}.within(rec).Mean("node_memory_used_bytes", nil, s.Begin, s.End)
	if err != nil || used != s.Means["memory_used_bytes"][""] || used <= 0 {
		t.Errorf("memory %v, summary %v, %v", used, s.Means["memory_used_bytes"], err)
	}
	all := 0.0
	for _, v := range s.Means["cpu_mean_seconds"] {
		all += v
	}
	if cores := s.Means["cpu_cores"][""]; all < cores/2 || all > cores*1.5 {
		t.Errorf("%v CPU-seconds per second on %v CPUs", all, cores)
	}
	f, ok := rec.Family("cnibench_command_status")
	if !ok {
		t.Fatal("no status")
	}
	for i, at := range rec.Times {
		want := sysmon.Value(0)
		if !at.Before(s.End) {
			want = 2
		} else if !at.Before(s.Begin) {
			want = 1
		}
		if f.Series[0].Values[i] != want {
			t.Errorf("status %v at %v", f.Series[0].Values[i], at)
		}
	}
	if _, ok := rec.Family("cnibench_summary_memory_used_bytes"); !ok {
		t.Error("the summary is not in the recording")
	}
	if text := s.Text(); !strings.Contains(text, "exit code 0") || !strings.Contains(text, "memory") {
		t.Error(text)
	}
}

// TestSignal: a signal to the recorder is the command's, during a delay it
// ends the run, and the recording is written.
func TestSignal(t *testing.T) {
	t.Run("to the command", func(t *testing.T) {
		o := options(t, "sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.02; done")
		ready, w := io.Pipe()
		o.Stdout = w
		go func() {
			_, _ = ready.Read(make([]byte, 10))
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			_, _ = io.Copy(io.Discard, ready)
		}()
		if code, _, err := Run(t.Context(), o); code != 7 || err != nil {
			t.Errorf("code %d, error %v", code, err)
		}
		result(t, o)
	})
	t.Run("before it", func(t *testing.T) {
		o := options(t, "sh", "-c", "exit 7")
		o.Before = time.Minute
		time.AfterFunc(700*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) })
		if code, _, err := Run(t.Context(), o); code != 130 || err != nil {
			t.Errorf("code %d, error %v", code, err)
		}
		result(t, o)
	})
}

// TestPair: the server's command starts before the client's and ends with it.
func TestPair(t *testing.T) {
	for _, tt := range []struct {
		name           string
		server, client []string
		startOnly      bool
		token          string
		serverCode     int
		clientCode     int
		clientErr      string // in the summary
		runErr         string // of the client's Run
	}{
		{name: "ended by the client", server: []string{"sleep", "1000"}, client: []string{"sleep", "0.3"}},
		{name: "the client's failure is its own", server: []string{"sleep", "1000"}, client: []string{"sh", "-c", "exit 3"}, clientCode: 3},
		{name: "start only", server: []string{"sh", "-c", "sleep 0.5; exit 5"}, client: []string{"true"}, startOnly: true, serverCode: 5},
		{name: "the server ends first", server: []string{"sh", "-c", "exit 4"}, client: []string{"sleep", "0.5"}, serverCode: 4},
		{name: "the server's command is not there", server: []string{"/no/such/program"}, client: []string{"true"}, serverCode: 127, clientCode: 1, clientErr: "the server's command did not start"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := freeAddress(t)
			s, c := options(t, tt.server...), options(t, tt.client...)
			s.Pair = Pair{Role: Server, Address: address, Token: secret}
			c.Pair = Pair{Role: Client, Address: address, Token: secret, Patience: 20 * time.Second, StartOnly: tt.startOnly}
			var wg sync.WaitGroup
			wg.Go(func() {
				if code, _, err := Run(t.Context(), s); code != tt.serverCode || err != nil {
					t.Errorf("server: code %d, error %v", code, err)
				}
			})
			if code, _, err := Run(t.Context(), c); code != tt.clientCode || err != nil {
				t.Errorf("client: code %d, error %v", code, err)
			}
			wg.Wait()
			server, serverSummary := result(t, s)
			_, clientSummary := result(t, c)
			if server.Labels["role"] != "server" || !strings.Contains(clientSummary.Error, tt.clientErr) {
				t.Errorf("labels %v, client's error %q", server.Labels, clientSummary.Error)
			}
			if clientSummary.Error == "" && serverSummary.Begin.After(clientSummary.Begin) {
				t.Errorf("the server's command began at %v, the client's at %v", serverSummary.Begin, clientSummary.Begin)
			}
		})
	}
}

// TestStrangers are refused, and the server goes on waiting.
func TestStrangers(t *testing.T) {
	address := freeAddress(t)
	s, c := options(t, "true"), options(t, "true")
	s.Pair = Pair{Role: Server, Address: address, Token: secret}
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	var wg sync.WaitGroup
	wg.Go(func() {
		if code, _, err := Run(t.Context(), s); code != 0 || err != nil {
			t.Errorf("server: code %d, error %v", code, err)
		}
	})
	c.Pair = Pair{Role: Client, Address: address, Token: []byte("a wrong token, long enough"), Patience: 20 * time.Second}
	if _, _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another token") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(c.File); err == nil {
		t.Error("a run that never began left a file")
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /start HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	c.Pair.Token = secret
	if code, _, err := Run(t.Context(), c); code != 0 || err != nil {
		t.Errorf("client: code %d, error %v", code, err)
	}
	wg.Wait()
	if n := strings.Count(log.String(), "was refused"); n < 1 {
		t.Errorf("log %s", &log)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no command", func(o *Options) { o.Command = nil }, "no command to record"},
		{"delay", func(o *Options) { o.Before = -1 }, "negative"},
		{"plain and zst", func(o *Options) { o.Plain = true }, "drop .zst or --plain"},
		{"same file", func(o *Options) { o.Summary = o.File }, "the same file"},
		{"label", func(o *Options) { o.Labels = map[string]string{"job": "x"} }, `label "job"`},
		{"label of a sampler", func(o *Options) { o.Labels = map[string]string{"cpu": "x"} }, `label "cpu"`},
		{"label value", func(o *Options) { o.Labels = map[string]string{"x": "\xff"} }, "not UTF-8"},
		{"label name", func(o *Options) { o.Labels = map[string]string{"__x": "1"} }, "begins with a letter"},
		{"token", func(o *Options) { o.Pair.Role = Client }, "shared token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, "true")
			if err := os.WriteFile(o.File, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			tt.change(&o)
			var wrong *OptionError
			if _, _, err := Run(t.Context(), o); !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if b, err := os.ReadFile(o.File); string(b) != "old" {
				t.Errorf("the older file has %q: %v", b, err)
			}
		})
	}
}
