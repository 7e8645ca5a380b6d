package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

const modeVar = "CNIBENCH_TEST_AGENT"

// TestMain lets the test binary be the agent: a real one, and some that
// misbehave.
func TestMain(m *testing.M) {
	if root := os.Getenv(rootVar); root != "" && len(os.Args) == 3 && os.Args[2] == "hold" {
		holdTree(root)
		return
	}
	switch os.Getenv(modeVar) {
	case "":
		os.Exit(m.Run())
	case "serve":
		args, err := parseArgs(os.Args[1:])
		if err == nil {
			err = Serve(context.Background(), os.Stdin, os.Stdout, args.scope, args.labels)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "exec":
		if err := ServeExec(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "fail":
		fmt.Fprintln(os.Stderr, "no such command: agent")
		os.Exit(2)
	case "garbage":
		fmt.Println("Usage: something else")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // answers the hello, then neither reads nor ends
		line, _ := bufio.NewReaderSize(os.Stdin, 16).ReadString('\n')
		var r request
		_ = json.Unmarshal([]byte(line), &r)
		fmt.Printf(`{"id":%d,"result":{}}`+"\n", r.ID)
		time.Sleep(time.Minute)
	case "mute": // reads, and answers the hello only
		in := bufio.NewReader(os.Stdin)
		_, _ = in.ReadString('\n')
		fmt.Println(`{"id":1,"result":{}}`)
		_, _ = io.Copy(io.Discard, in)
	}
}

type agentArgs struct {
	scope  sysmon.Scope
	labels map[string]string
}

// parseArgs reads what Start passes; the command's own reading of it is in cli.
func parseArgs(args []string) (agentArgs, error) {
	a := agentArgs{labels: map[string]string{}}
	if len(args) < 3 || args[0] != "agent" || args[1] != "--scope" {
		return a, fmt.Errorf("arguments %q", args)
	}
	a.scope = sysmon.Scope(args[2])
	for rest := args[3:]; len(rest) > 0; rest = rest[2:] {
		name, value, ok := strings.Cut(rest[1], "=")
		if rest[0] != "--label" || !ok {
			return a, fmt.Errorf("arguments %q", args)
		}
		a.labels[name] = value
	}
	return a, nil
}

// child runs the test binary as an agent of that mode.
type child struct {
	t    *testing.T
	mode string
}

func (r child) Start(ctx context.Context, c host.Command) (host.Process, error) {
	if !c.OffMeasuredCPUs {
		r.t.Error("the agent was not started aside")
	}
	c.Env = append(c.Env, modeVar+"="+r.mode)
	return host.Local{}.Start(ctx, c)
}

// here runs the agent as a goroutine behind the same pipes.
type here struct{ t *testing.T }

type goroutine struct {
	done   chan error
	cancel context.CancelFunc
}

func (r here) Start(ctx context.Context, c host.Command) (host.Process, error) {
	args, err := parseArgs(c.Argv[1:])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := goroutine{make(chan error, 1), cancel}
	go func() { p.done <- Serve(ctx, c.Stdin, c.Stdout, args.scope, args.labels) }()
	return p, nil
}

func (p goroutine) Wait() error            { defer p.cancel(); return <-p.done }
func (p goroutine) Signal(os.Signal) error { p.cancel(); return nil }

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(exe); err != nil {
		t.Fatal(err)
	}
	return exe
}

// start starts an agent that is closed with the test.
func start(t *testing.T, r host.Runner, scope sysmon.Scope) *Client {
	t.Helper()
	labels := map[string]string{"node": "node7", "endpoint": "a, b=c"}
	c, err := Start(t.Context(), r, self(t), labels, scope)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var loopback = netip.MustParseAddr("127.0.0.1")
