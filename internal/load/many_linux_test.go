package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/load/fdtable"
	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

const manyConnections = 60_000

// As many connections as the published study had, all open at once, each used
// for a request, in a network namespace of the test's own: both sides in one
// process, and all of it in less than 1 GiB.
func TestManyConnections(t *testing.T) {
	needs.Slow(t, "opens as many connections as the published study")
	const child = "CNIBENCH_TEST_MANY_CONNECTIONS"
	if os.Getenv(child) != "" {
		loadMany(t)
		return
	}
	limit, err := fdtable.Limit()
	if err != nil {
		t.Fatal(err)
	}
	if maximum := (limit - spareFiles) * maxThreads; maximum < manyConnections {
		needs.Missing(t, fmt.Sprintf("%d threads of %d files each hold %d connections; raise the limit: ulimit -Hn 20000", maxThreads, limit, maximum))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyConnections$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		needs.Missing(t, "no network namespaces here; run as root, or allow them with: sysctl -w user.max_net_namespaces=10000")
	}
	t.Logf("%s", bytes.TrimSpace(out))
	if err != nil {
		t.Error(err)
	}
}

func loadMany(t *testing.T) {
	loopbackUp(t)
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("1024 65535"), 0); err != nil {
		t.Fatal(err)
	}
	// One source has ports enough, but the kernel looks for a free one among
	// tens of thousands then, and the connections take a minute.
	var sources []netip.Addr
	for i := range 4 {
		sources = append(sources, netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)}))
	}
	// A low port, which no connection can have taken.
	_, addr := startServer(t, serve.Config{Protocol: serve.TCP, Listen: "127.0.0.1:800", Threads: 4, Request: 1, Response: 1})
	begun := time.Now()
	var ready time.Duration
	res, err := Run(context.Background(), Config{
		Target: addr, Exchange: TCPRR{}, Sources: sources, Connections: manyConnections, Rate: 4_000, Duration: 15 * time.Second, Timeout: time.Minute,
		Begin: func() { ready = time.Since(begun) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d connections on %d threads after %v; rate %.0f/s, %d missed, limits %v", manyConnections, res.Threads, ready, res.Rate(), res.Missed, res.Limits)
	if res.Planned != manyConnections || res.Requests+res.Missed != res.Planned || len(res.Errors) != 0 || res.Requests < manyConnections*9/10 {
		t.Errorf("planned %d, answered %d, missed %d, errors %v; want %d, no error", res.Planned, res.Requests, res.Missed, res.Errors, manyConnections)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	t.Logf("memory of client and server at most %d MiB", kib>>10)
	if kib >= 1<<20 {
		t.Errorf("memory at most %d MiB, want less than 1 GiB", kib>>10)
	}
}

// loopbackUp brings lo up.
func loopbackUp(t *testing.T) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr); err != nil {
		t.Fatal(err)
	}
}
