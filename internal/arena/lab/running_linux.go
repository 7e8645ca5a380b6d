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
}

// FindRunning lists the labs that the caller may look into, oldest first.
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
		if err != nil {
			continue // not ours to look at, or gone
		}
		if isInit(dir) {
			byNamespace[pidNS] = &Running{Init: pid, Launcher: parent(dir)}
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

// innerPID is the process' number in its own PID namespace.
func innerPID(dir string) string {
	for _, line := range statusLines(dir) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if fields := strings.Fields(rest); len(fields) > 1 {
				return fields[len(fields)-1]
			}
		}
	}
	return ""
}

func parent(dir string) int {
	for _, line := range statusLines(dir) {
		if rest, ok := strings.CutPrefix(line, "PPid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(rest))
			return pid
		}
	}
	return 0
}

func statusLines(dir string) []string {
	b, err := os.ReadFile(dir + "/status")
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
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

// Kill ends the lab with everything in it.
func (r *Running) Kill() error { return unix.Kill(r.Init, unix.SIGKILL) }
