package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Running is a lab on this machine, found by its processes: a lab keeps no
// state elsewhere.
type Running struct {
	Init      int            // its init, as this machine numbers processes
	Launcher  int            // the process that started it; 1 or 0 when that is gone
	Endpoints map[string]int // a process inside each node and pod
	pidNS     string         // its PID namespace, as /proc names it
}

// FindRunning lists the labs of the effective user, oldest first. Another
// user's processes are passed over, whatever they call themselves: root would
// enter namespaces with that user's programs in them.
func FindRunning() ([]Running, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	byNamespace := map[string]*Running{}
	agents := map[string]map[string]int{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		pidNS, err := os.Readlink(dir + "/ns/pid_for_children")
		if err != nil || !own(dir) {
			continue // not ours to look at, or gone
		}
		if isInit(dir) {
			byNamespace[pidNS] = &Running{Init: pid, Launcher: parent(dir), pidNS: pidNS}
		} else if name := endpointOf(dir); name != "" {
			if agents[pidNS] == nil {
				agents[pidNS] = map[string]int{}
			}
			agents[pidNS][name] = pid
		}
	}
	var labs []Running
	for pidNS, r := range byNamespace {
		r.Endpoints = agents[pidNS]
		labs = append(labs, *r)
	}
	sort.Slice(labs, func(i, j int) bool { return labs[i].Init < labs[j].Init })
	return labs, nil
}

// isInit says that the process was started by Contain.
func isInit(dir string) bool {
	env, err := os.ReadFile(dir + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+containedEnv+"=1\x00")) && innerPID(dir) == "1"
}

// own reports whether the process is the effective user's by all its user IDs:
// a program with the set-user-ID bit keeps its caller's. The owner of /proc/PID
// proves nothing, as any process can make root the owner of its own.
func own(dir string) bool {
	ids := statusField(dir, "Uid:")
	for _, id := range ids {
		if id != strconv.Itoa(os.Geteuid()) {
			return false
		}
	}
	return len(ids) == 4
}

// innerPID is the process' number in its own PID namespace.
func innerPID(dir string) string {
	if ids := statusField(dir, "NSpid:"); len(ids) > 1 {
		return ids[len(ids)-1]
	}
	return ""
}

func parent(dir string) int {
	if ids := statusField(dir, "PPid:"); len(ids) == 1 {
		pid, _ := strconv.Atoi(ids[0])
		return pid
	}
	return 0
}

// statusField returns the values of a line of the process' status.
func statusField(dir, name string) []string {
	b, err := os.ReadFile(dir + "/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// endpointOf is the name that an agent was started with, or "".
func endpointOf(dir string) string {
	b, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	if len(args) < 2 || args[1] != "agent" {
		return ""
	}
	for _, arg := range args[2:] {
		if i := strings.Index(arg, "endpoint="); i >= 0 {
			return arg[i+len("endpoint="):]
		}
	}
	return ""
}

// Orphaned says that the lab's launcher is gone while the lab is not: the
// kernel should have killed it. Its parent then is another program. A parent
// that can't be seen proves nothing.
func (r *Running) Orphaned() bool {
	own, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.Init))
	if err != nil || r.Launcher == 0 {
		return false
	}
	other, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.Launcher))
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(own, other)
}

// Kill ends the lab with everything in it. Its init's number may be another
// process' by now, but the descriptor's process stays the same. Errors:
// os.ErrProcessDone where the lab has ended.
func (r *Running) Kill() error {
	fd, err := unix.PidfdOpen(r.Init, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("find the lab's init %d: %w", r.Init, err)
	}
	defer unix.Close(fd)
	dir := fmt.Sprintf("/proc/%d", r.Init)
	if pidNS, err := os.Readlink(dir + "/ns/pid_for_children"); err != nil || pidNS != r.pidNS || !own(dir) || !isInit(dir) {
		return fmt.Errorf("process %d is no longer the lab's init: %w", r.Init, os.ErrProcessDone)
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
