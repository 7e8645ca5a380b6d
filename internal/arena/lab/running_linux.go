package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Running is a lab on this machine, found by its processes: a lab keeps no
// state elsewhere.
type Running struct {
	Init      int            // its init, as this machine numbers processes
	Launcher  int            // parent of Init: the process that started the lab, or 1 or 0 if that has ended
	Endpoints map[string]int // a process inside each node and pod
	pidNS     string         // its PID namespace, as /proc names it
}

// FindRunning lists the labs of the effective user, oldest first. Another
// user's processes are passed over, whatever they call themselves: root would
// enter namespaces with that user's programs in them.
func FindRunning() ([]Running, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	byNamespace := map[string]*Running{}
	agents := map[string]map[string]int{}
	for _, p := range processes {
		pidNS, err := pidNamespace(p.PID)
		if err != nil || !ownedByUser(p) {
			continue // another user's, or ended
		}
		if isInit(p) {
			stat, _ := p.Stat() // of a process that has ended, its parent is 0
			byNamespace[pidNS] = &Running{Init: p.PID, Launcher: stat.PPID, pidNS: pidNS}
		} else if name := endpointOf(p); name != "" {
			if agents[pidNS] == nil {
				agents[pidNS] = map[string]int{}
			}
			agents[pidNS][name] = p.PID
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

// pidNamespace returns the PID namespace of the process, as /proc names it.
func pidNamespace(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", pid))
}

// isInit reports whether Contain started the process.
func isInit(p procfs.Proc) bool {
	env, err := p.Environ()
	if err != nil || !slices.Contains(env, containedEnv+"=1") {
		return false
	}
	status, err := p.NewStatus()
	inner := len(status.NSpids) - 1 // the PID in the innermost namespace
	return err == nil && inner > 0 && status.NSpids[inner] == 1
}

// ownedByUser reports whether all user IDs of the process are the effective user's:
// a program with the set-user-ID bit keeps its caller's as one of them. The owner
// of /proc/PID proves nothing: any process can make root the owner of its own.
func ownedByUser(p procfs.Proc) bool {
	status, err := p.NewStatus()
	return err == nil && !slices.ContainsFunc(status.UIDs[:], func(id uint64) bool { return id != uint64(os.Geteuid()) })
}

// endpointOf returns the name of the agent's endpoint, "" if the process is no agent.
func endpointOf(p procfs.Proc) string {
	args, err := p.CmdLine()
	if err != nil || len(args) < 2 || args[1] != "agent" {
		return ""
	}
	for _, arg := range args[2:] {
		if i := strings.Index(arg, "endpoint="); i >= 0 {
			return arg[i+len("endpoint="):]
		}
	}
	return ""
}

// Orphaned reports whether the lab has outlived its launcher, though the kernel
// should have killed it: the parent of its init is then another program. A parent
// that can't be seen counts as the launcher.
func (r *Running) Orphaned() bool {
	initExe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.Init))
	if err != nil || r.Launcher == 0 {
		return false
	}
	parentExe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.Launcher))
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(initExe, parentExe)
}

// Kill ends the lab with everything in it. The PID of its init may be another
// process' by now, so Kill checks and signals through a descriptor of the process.
// The error is os.ErrProcessDone if the lab has ended.
func (r *Running) Kill() error {
	fd, err := unix.PidfdOpen(r.Init, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("find the lab's init %d: %w", r.Init, err)
	}
	defer unix.Close(fd)
	p, procErr := procfs.NewProc(r.Init)
	pidNS, err := pidNamespace(r.Init)
	if errors.Join(procErr, err) != nil || pidNS != r.pidNS || !ownedByUser(p) || !isInit(p) {
		return fmt.Errorf("process %d is no longer the lab's init: %w", r.Init, os.ErrProcessDone)
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
