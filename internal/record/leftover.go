package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leavePatience is how long processes that a stopped command left behind may take to end
// by themselves, and termPatience how long they may take after a SIGTERM.
const (
	leavePatience = 500 * time.Millisecond
	termPatience  = 2 * time.Second
)

// sweep ends the remaining processes of a command that was stopped because its client
// ended: a shell's background children ignore SIGINT.
func (c *command) sweep() {
	if !c.group || !c.stopped && c.peerLost == nil || c.process == nil {
		return
	}
	group := c.process.PID()
	left := awaitEmpty(group, leavePatience)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if len(left) == 0 {
			return
		}
		c.log.Warn(fmt.Sprintf("%s has ended and left %s; they get %s", c.argv[0], strings.Join(left, ", "), unix.SignalName(s)))
		_ = syscall.Kill(-group, s) // an error means that the processes have ended meanwhile
		left = awaitEmpty(group, termPatience)
	}
	if len(left) > 0 {
		c.log.Warn(fmt.Sprintf("%s could not be ended", strings.Join(left, ", ")))
	}
}

// awaitEmpty waits until the process group is empty, but not longer than patience. It
// returns the processes that are left.
func awaitEmpty(group int, patience time.Duration) []string {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := members(group)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// members returns the running processes of the group as "NAME (PID)". Without /proc it
// returns only the group's number.
func members(group int) []string {
	if syscall.Kill(-group, 0) != nil {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	if len(files) == 0 {
		return []string{fmt.Sprintf("process group %d", group)}
	}
	var list []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		stat := string(b)
		open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
		if open < 0 || end < open {
			continue
		}
		// proc_pid_stat(5): state, parent, process group
		if fields := strings.Fields(stat[end+1:]); len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" {
			list = append(list, fmt.Sprintf("%s (%s)", stat[open+1:end], strings.TrimSpace(stat[:open])))
		}
	}
	return list
}
