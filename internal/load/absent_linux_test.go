package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/load/serve"
)

// A load that is suspended for a while has itself to blame for every request
// that this made late, the backlog that found all connections busy included.
func TestAbsenceIsTheEnginesFault(t *testing.T) {
	const child, away = "CNIBENCH_TEST_ABSENT", 300 * time.Millisecond
	if target := os.Getenv(child); target != "" {
		loadAbsent(t, target)
		return
	}
	_, addr := startServer(t, serve.Config{})
	// Until it serves: a thread that copies the file table while a program is
	// started would hold that start's pipe open.
	mustLoad(t, Config{Target: addr, Connections: 1, Rate: 100, Duration: 20 * time.Millisecond})
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbsenceIsTheEnginesFault$")
	cmd.Env = append(os.Environ(), child+"="+addr.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(out)
	var begun, r Report
	err = lines.Decode(&begun)
	if err == nil {
		time.Sleep(100 * time.Millisecond)
		err = cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(away)
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGCONT), lines.Decode(&r))
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	// The plan has 4000 requests a second; what is queued is the server's fault, which a busy
	// machine keeps from its CPU, too.
	if r.Late < int64(4000*away.Seconds()*0.9) || r.Queued > r.Late/2 || !strings.Contains(fmt.Sprint(r.Limits), "load_generator_late") {
		t.Errorf("suspended for %v: of %d planned %d late, %d queued, limits %v", away, r.Planned, r.Late, r.Queued, r.Limits)
	}
	if lag, latency := r.Times["send_lag_p99"], r.Times["latency_p99"]; lag < away.Seconds()/2 || lag > latency*1.001 {
		t.Errorf("send lag p99 %.3f s, latency p99 %.3f s; want nearly all of it", lag, latency)
	}
}

// loadAbsent prints a line as the window begins, and the report.
func loadAbsent(t *testing.T, target string) {
	lines := json.NewEncoder(os.Stdout)
	cfg := Config{
		Target: netip.MustParseAddrPort(target), Exchange: HTTP{}, Connections: 16, Rate: 4000, Duration: time.Second,
		Begin: func() { _ = lines.Encode(struct{}{}) },
	}
	res, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	report, err := res.Report(cfg, target, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := lines.Encode(report); err != nil {
		t.Fatal(err)
	}
}
