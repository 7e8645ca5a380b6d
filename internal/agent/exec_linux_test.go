package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// A descendant that has left the command's group and session ends with the
// command, whether that ends by itself or with its stream.
func TestNoDescendantOutlivesTheCommand(t *testing.T) {
	for name, script := range map[string]string{
		"by itself":    "setsid sleep 1000 >/dev/null 2>&1 & echo $!",
		"with context": "setsid sleep 1000 >/dev/null 2>&1 & echo $!; exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := newAwaited("\n")
			p, err := StartExec(ctx, wrapper, host.Command{Argv: []string{"sh", "-c", script}, Stdout: said})
			if err != nil {
				t.Fatal(err)
			}
			<-said.seen
			if name != "by itself" {
				cancel()
			}
			_ = p.Wait()
			pid, err := strconv.Atoi(strings.TrimSpace(said.b.String()))
			if err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					t.Fatalf("process %d outlived its command", pid)
				}
			}
		})
	}
}

// alive says whether the process is there and no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z'
}
