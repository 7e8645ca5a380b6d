package workload

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/load/transfer"
)

// TestTransfers drives the workloads that move a file with this module's own
// program and the real servers, on loopback.
func TestTransfers(t *testing.T) {
	program := builtProgram(t)
	all := []Workload{using(program, HTTPGet()), using(program, HTTPSGet()), using(program, HTTP3Get()), using(program, FTPGet()), using(program, ScpCopy())}
	for _, w := range all {
		t.Run(w.Info().Name, func(t *testing.T) {
			t.Run("verified", func(t *testing.T) { testTransfer(t, w) })
			t.Run("another size", func(t *testing.T) { testOtherSize(t, w) })
			t.Run("the server dies", func(t *testing.T) { testTransferServerDies(t, w) })
			t.Run("the limit passes", func(t *testing.T) { testTransferLimit(t, w) })
			t.Run("no room at the server", func(t *testing.T) { testServerFull(t, w) })
			t.Run("no room at the client", func(t *testing.T) { testClientFull(t, w) })
		})
	}
	t.Run("a slow path", func(t *testing.T) { testSlowPath(t, using(program, ScpCopy())) })
	t.Run("wrong secrets", func(t *testing.T) { testWrongSecrets(t, program) })
	t.Run("http3_get without GSO", func(t *testing.T) { testWithoutGSO(t, program) })
}

// using is the transfer with that program at the endpoints.
func using(program string, d Transfer) Transfer {
	d.Program = program
	return d
}

// transferSession is a short session of w on loopback with its window.
func transferSession(t *testing.T, w Workload, params map[string]any) (*Session, *window) {
	t.Helper()
	given := map[string]any{"size": "4MiB"}
	for name, value := range params {
		given[name] = value
	}
	s, marks := prepare(t, w, given)
	s.Warmup, s.Duration = 10*time.Millisecond, 300*time.Millisecond
	watch(t, s)
	return s, marks
}

// left fails the test if the drive left something in the endpoints' folders or
// secrets among the raw files.
func left(t *testing.T, s *Session) {
	t.Helper()
	for _, e := range []arena.Endpoint{s.Client, s.Server} {
		files, err := os.ReadDir(e.Dir())
		if err != nil || len(files) > 0 {
			t.Errorf("%s: left behind %v, %v", e.Name(), files, err)
		}
	}
	for name, b := range s.Raw.(*memory).files {
		if strings.Contains(b.String(), "PRIVATE KEY") || strings.Contains(b.String(), "password ") {
			t.Errorf("a secret is in the raw file %s", name)
		}
	}
}

func testTransfer(t *testing.T, w Workload) {
	s, marks := transferSession(t, w, map[string]any{"verify": true})
	out, err := w.Drive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range w.Info().Metrics {
		if v, there := out.Metrics[name]; !there || !(v > 0) {
			t.Errorf("%s is %v (%v)", name, v, there)
		}
	}
	if len(out.Metrics) != len(w.Info().Metrics) {
		t.Errorf("metrics %v, announced %v", out.Metrics, w.Info().Metrics)
	}
	if len(marks.begins) != 1 || len(marks.ends) != 1 {
		t.Fatalf("%d begins and %d ends", len(marks.begins), len(marks.ends))
	}
	report, err := readTransfer(strings.NewReader(rawOf(s, "client.json")), func() {}, func() {})
	if err != nil || float64(len(report.Transfers)) != out.Metrics["transfers"] {
		t.Errorf("%v transfers, and the client says %+v, %v", out.Metrics["transfers"], report, err)
	}
	if err == nil && out.Pauses != report.Gaps() { // the recorder sees the pauses, goodput does not
		t.Errorf("pauses of %v of the window, the client says %v", out.Pauses, report.Gaps())
	}
	for _, name := range []string{"server.command", "client.command", "client.json"} {
		if rawOf(s, name) == "" {
			t.Errorf("nothing in %s", name)
		}
	}
	if is, noted := w.Info().Name == "scp_copy", strings.Contains(codes(out), "first_byte_is_whole_copy"); is != noted {
		t.Errorf("notes %q", codes(out))
	}
	left(t, s)
}

// A file that would take too long is halved until it does not, and a reader is
// told.
func testSlowPath(t *testing.T, w Workload) {
	s, _ := transferSession(t, w, map[string]any{"size": "64MiB"})
	s.Warmup, s.Duration = 0, time.Millisecond
	s.Client = other{s.Client, func(c *host.Command) {
		if i := slices.Index(c.Argv, "-F"); i > 0 && slices.Contains(c.Argv, "transfer") {
			c.Argv = slices.Insert(c.Argv, i, "-l", "32000") // scp's limit, kbit/s
		}
	}}
	out, err := w.Drive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	report, err := readTransfer(strings.NewReader(rawOf(s, "client.json")), func() {}, func() {})
	if err != nil || report.FileBytes >= 64<<20 || report.FileBytes < probeBytes || !strings.Contains(codes(out), "smaller_file") {
		t.Errorf("%+v, notes %q, %v", report, codes(out), err)
	}
	if rawOf(s, "probe-512-KiB.json") == "" {
		t.Error("the probe is not among the raw files")
	}
	left(t, s)
}

func TestProbe(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name             string
		p                probe
		fits, believable bool
	}{
		{"fast", probe{mib / 2, 0.001, 0.001}, true, false},
		{"slow", probe{mib / 2, 1, 0.1}, false, true},
		{"a login that is longer than the next one with its file", probe{mib / 2, -2, 5}, false, false},
		{"chance beside a long login", probe{mib / 2, 2, 5}, false, false},
		{"slow beside a long login", probe{mib / 2, 3, 5}, false, true},
		{"short, and too long for the whole", probe{mib / 2, 0.1, 0.2}, false, false},
		{"a larger one knows better", probe{8 * mib, 0.1, 0.2}, true, false},
	} {
		if fits, believable := tt.p.fits(256*mib), tt.p.believable(); fits != tt.fits || believable != tt.believable {
			t.Errorf("%s: fits %v, believable %v", tt.name, fits, believable)
		}
	}
}

func TestFittingSize(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name        string
		size, probe int64
		took        float64
		want        int64
	}{
		{"just fits", 256 * mib, 4 * mib, maxSeconds / 64, 256 * mib},
		{"just too large", 256 * mib, 4 * mib, maxSeconds / 63, 128 * mib},
		{"a tenth", 256 * mib, 4 * mib, maxSeconds / 6.4, 16 * mib},
		{"no smaller than the probe", 256 * mib, 4 * mib, 100 * maxSeconds, 4 * mib},
		{"an odd size", 5 * mib, 4 * mib, 100 * maxSeconds, 5 * mib},
		{"login took as long as the file", 256 * mib, 4 * mib, -0.01, 256 * mib},
	} {
		if got := fitSize(tt.size, tt.probe, tt.took); got != tt.want {
			t.Errorf("%s: %d MiB, want %d", tt.name, got/mib, tt.want/mib)
		}
	}
}

// other is an endpoint whose commands are changed on their way.
type other struct {
	arena.Endpoint
	change func(c *host.Command)
}

func (o other) Start(ctx context.Context, c host.Command) (host.Process, error) {
	c.Argv = slices.Clone(c.Argv)
	o.change(&c)
	return o.Endpoint.Start(ctx, c)
}

// refused drives w, which must fail with an error that says all of that.
func refused(t *testing.T, w Workload, s *Session, says ...string) {
	t.Helper()
	out, err := w.Drive(t.Context(), s)
	if err == nil || out.Metrics != nil {
		t.Fatalf("measured %v, %v", out.Metrics, err)
	}
	for _, want := range append(says, w.Info().Name+": ") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	left(t, s)
}

func testOtherSize(t *testing.T, w Workload) {
	s, _ := transferSession(t, w, nil)
	s.Server = other{s.Server, func(c *host.Command) {
		if i := slices.Index(c.Argv, "--bytes"); i > 0 && c.Argv[i+1] == "4194304" {
			c.Argv[i+1] = "2000000"
		}
	}}
	says := "2000000 bytes arrived instead of 4194304"
	if w.Info().Name == "scp_copy" {
		says = "bytes for a file of 4194304"
	}
	refused(t, w, s, says)
}

// doomed is an endpoint whose server can be ended.
type doomed struct {
	arena.Endpoint
	mu     sync.Mutex
	server host.Process
}

func (d *doomed) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := d.Endpoint.Start(ctx, c)
	if err == nil && !c.OffMeasuredCPUs {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.server = p
	}
	return p, err
}

func testTransferServerDies(t *testing.T, w Workload) {
	s, marks := transferSession(t, w, nil)
	s.Duration = time.Minute
	server := &doomed{Endpoint: s.Server}
	s.Server = server
	s.Begin = func() {
		marks.begin()
		time.AfterFunc(100*time.Millisecond, func() {
			server.mu.Lock()
			defer server.mu.Unlock()
			if err := server.server.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		})
	}
	refused(t, w, s, "the server ended in the middle of the step: server: ")
	if len(marks.begins) != len(marks.ends) {
		t.Errorf("%d begins and %d ends", len(marks.begins), len(marks.ends))
	}
}

// A limit that passes is named as such, not as the death of a program, which
// is its consequence.
func testTransferLimit(t *testing.T, w Workload) {
	for _, limit := range []time.Duration{20 * time.Millisecond, time.Second} { // in the start and in the window
		s, marks := transferSession(t, w, nil)
		s.Duration = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		out, err := w.Drive(ctx, s)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "137") || out.Metrics != nil {
			t.Errorf("after %v: %v, %v; want the deadline alone", limit, out.Metrics, err)
		}
		if len(marks.begins) != len(marks.ends) {
			t.Errorf("%d begins and %d ends", len(marks.begins), len(marks.ends))
		}
		left(t, s)
	}
}

// The server's file is written with a limit on what may be, so that the kernel
// says no as a full file system does.
func testServerFull(t *testing.T, w Workload) {
	s, _ := transferSession(t, w, nil)
	s.Server = other{s.Server, func(c *host.Command) {
		if slices.Contains(c.Argv, "file") {
			c.Argv = append([]string{"sh", "-c", `ulimit -f 100; exec "$@"`, "sh"}, c.Argv...)
		}
	}}
	refused(t, w, s, "the file at the server: ", "a file of 524288 bytes: write "+filepath.Join(s.Server.Dir(), "transfer", "data")+": file too large")
}

// The client is sent to a device that is always full, by a link of its own,
// which is what it takes away afterwards.
func testClientFull(t *testing.T, w Workload) {
	s, _ := transferSession(t, w, map[string]any{"verify": true})
	full := filepath.Join(t.TempDir(), "full")
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	s.Client = other{s.Client, func(c *host.Command) {
		if i := slices.Index(c.Argv, "--verify"); i > 0 {
			c.Argv[i+1] = full
		}
	}}
	says := map[string]string{
		"http3_get": "no space left on device",
		"scp_copy":  "No space left on device",
	}[w.Info().Name]
	if says == "" {
		says = "curl: (23) "
	}
	refused(t, w, s, "client: the transfer to verify: ", says)
}

// A secret that does not match is refused by the other side, whose words the
// error has.
func testWrongSecrets(t *testing.T, program string) {
	replace := func(name, old, text string) func(c *host.Command) {
		return func(c *host.Command) {
			if c.Stdin == nil || filepath.Base(c.Argv[len(c.Argv)-1]) != name {
				return
			}
			b, err := io.ReadAll(c.Stdin)
			if err != nil {
				t.Error(err)
			}
			changed := text
			if old != "" {
				changed = strings.Replace(string(b), old, text, 1)
			}
			c.Stdin = strings.NewReader(changed)
		}
	}
	certificate, _, err := transfer.Certificate(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	// A good key, but nobody's here.
	const key = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	for _, tt := range []struct {
		name           string
		w              Workload
		client, server func(c *host.Command)
		says           []string
	}{
		{"FTP password", using(program, FTPGet()), replace("netrc", "password ", "password x"), nil, []string{"Access denied: 530"}},
		{"certificate for curl", using(program, HTTPSGet()), replace("ca.pem", "", string(certificate)), nil, []string{"curl: (60) SSL certificate problem"}},
		{"certificate for HTTP/3", using(program, HTTP3Get()), replace("ca.pem", "", string(certificate)), nil, []string{"x509: "}},
		{"host key", using(program, ScpCopy()), replace("known_hosts", "AAAAC3NzaC1lZDI1NTE5", "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl x"), nil, []string{"Host key verification failed"}},
		{"user's key", using(program, ScpCopy()), nil, replace("authorized_keys", "", "ssh-ed25519 "+key+"\n"), []string{"Permission denied (publickey)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := transferSession(t, tt.w, nil)
			if tt.client != nil {
				s.Client = other{s.Client, tt.client}
			}
			if tt.server != nil {
				s.Server = other{s.Server, tt.server}
			}
			refused(t, tt.w, s, tt.says...)
		})
	}
}

func testWithoutGSO(t *testing.T, program string) {
	w := using(program, HTTP3Get())
	s, _ := transferSession(t, w, map[string]any{"gso": false})
	if out, err := w.Drive(t.Context(), s); err != nil || strings.Contains(codes(out), "gso") {
		t.Errorf("notes %q, %v", codes(out), err)
	}
	if said := rawOf(s, "server.txt"); !strings.Contains(said, `"gso":false`) {
		t.Errorf("the server says %s", said)
	}
}

func TestTransferRefuses(t *testing.T) {
	for _, tt := range []struct{ size, says string }{
		{"0", "1 byte to 1 TiB"}, {"2TiB", "1 byte to 1 TiB"}, {"large", "write a size as"},
	} {
		s := loopback(t)
		var err error
		if s.Params, err = Complete(FTPGet().Info(), map[string]any{"size": tt.size}); err != nil {
			t.Fatal(err)
		}
		if _, err := FTPGet().Drive(t.Context(), s); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want one that says %q", tt.size, err, tt.says)
		}
	}
}

func TestReadTransfer(t *testing.T) {
	const begin, end = `{"event":"begin"}` + "\n", `{"event":"end"}` + "\n"
	const report = `{"schema":"cnibench/transfer/1","file_bytes":10,"transfers":[{"seconds":1}],"window_seconds":2}` + "\n"
	for _, tt := range []struct{ name, in, marks, says string }{
		{"whole", begin + end + report, "begin end", ""},
		{"nothing", "", "", "without a report"},
		{"cut off in the window", begin, "begin end", "without a report"},
		{"no report", begin + end, "begin end", "without a report"},
		{"a report without a window", report, "", "unexpected line"},
		{"two reports", begin + end + report + report, "begin end", "unexpected line"},
		{"two windows", begin + begin, "begin end", "unexpected line"},
		{"another program", "hello\n", "", "output of the client"},
		{"no transfers", begin + end + `{"schema":"cnibench/transfer/1","window_seconds":2}`, "begin end", "without a report"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var marks []string
			mark := func(name string) func() { return func() { marks = append(marks, name) } }
			r, err := readTransfer(strings.NewReader(tt.in), mark("begin"), mark("end"))
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v, error %v, want one that says %q", r, err, tt.says)
			}
			if got := strings.Join(marks, " "); got != tt.marks {
				t.Errorf("marks %q, want %q", got, tt.marks)
			}
		})
	}
}

func FuzzReadTransfer(f *testing.F) {
	f.Add(`{"event":"begin"}` + "\n" + `{"event":"end"}` + "\n" + `{"schema":"cnibench/transfer/1","file_bytes":10,"transfers":[{"seconds":1}],"window_seconds":2}`)
	f.Fuzz(func(t *testing.T, in string) {
		begins, ends := 0, 0
		r, err := readTransfer(strings.NewReader(in), func() { begins++ }, func() { ends++ })
		if begins != ends || begins > 1 || err == nil && (r == nil || len(r.Transfers) == 0) {
			t.Errorf("%d begins, %d ends, %+v, %v", begins, ends, r, err)
		}
	})
}

// What nginx is told is all there is: nothing of the machine's is used.
func TestFileServerConfig(t *testing.T) {
	for _, tt := range []struct {
		f    fileServer
		has  []string
		lack string
	}{
		{fileServer{listen: netip.MustParseAddrPort("10.0.0.1:8080"), dir: "/run/x", sendfile: true}, []string{"listen 10.0.0.1:8080;", "sendfile on;", `root "/run/x";`}, "ssl"},
		{fileServer{listen: netip.MustParseAddrPort("[fd00::1]:8443"), dir: "/run/x", tls: true}, []string{"listen [fd00::1]:8443 ssl;", "sendfile off;", "TLSv1.3;", `"/run/x/key.pem"`}, "DIR"},
	} {
		config := tt.f.config()
		for _, want := range tt.has {
			if !strings.Contains(config, want) {
				t.Errorf("the configuration lacks %q:\n%s", want, config)
			}
		}
		if strings.Contains(config, tt.lack) {
			t.Errorf("the configuration has %q:\n%s", tt.lack, config)
		}
	}
}
