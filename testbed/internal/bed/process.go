//go:build linux

package bed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// startTime says when a process started, in clock ticks since the machine did.
// One that has ended is none, though its parent may not have asked for it yet.
func startTime(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; field 22 is the 20th after it.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	if fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// keeper starts processes and takes back every process that ends below this
// one, which is the init of its PID namespace. os/exec can't be used beside
// it: both would wait for the same process.
type keeper struct {
	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
}

func newKeeper() *keeper {
	k := &keeper{waiting: map[int]chan unix.WaitStatus{}}
	go k.reap()
	return k
}

func (k *keeper) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err != nil { // no child at the moment, or a signal
			time.Sleep(20 * time.Millisecond)
			continue
		}
		k.mu.Lock()
		ended := k.waiting[pid]
		delete(k.waiting, pid)
		k.mu.Unlock()
		if ended != nil {
			ended <- status
		}
	}
}

// start starts a program; its end is sent once. What it prints goes to the log.
func (k *keeper) start(argv []string, log *os.File) (pid int, ended <-chan unix.WaitStatus, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	return k.startWith(argv, &os.ProcAttr{Env: nodeEnv(), Files: []*os.File{null, log, log}})
}

func (k *keeper) startWith(argv []string, attr *os.ProcAttr) (pid int, ended <-chan unix.WaitStatus, err error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	process, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	pid = process.Pid
	if err := process.Release(); err != nil {
		return 0, nil, err
	}
	wait := make(chan unix.WaitStatus, 1)
	k.waiting[pid] = wait
	return pid, wait, nil
}

// run runs a command to its end; what it prints goes to the log.
func (k *keeper) run(argv []string, log *os.File) error {
	_, ended, err := k.start(argv, log)
	if err != nil {
		return err
	}
	if status := <-ended; status.ExitStatus() != 0 {
		return fmt.Errorf("%s: exit %d, signal %v", strings.Join(argv, " "), status.ExitStatus(), status.Signal())
	}
	return nil
}

// daemon is a program that is started again whenever it ends.
type daemon struct {
	name string // of its log
	argv []string
	k    *keeper

	mu   sync.Mutex
	pid  int       // 0 while it doesn't run
	hold time.Time // not to be started before
	off  bool      // not to be started again
	done chan struct{}
}

// keep starts a program and looks after it. Its log grows over all starts.
func (k *keeper) keep(logDir, name string, argv []string) (*daemon, error) {
	log, err := os.OpenFile(logDir+"/"+name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	d := &daemon{name: name, argv: argv, k: k, done: make(chan struct{})}
	ended, err := d.start(log)
	if err != nil {
		log.Close()
		return nil, err
	}
	go func() {
		defer close(d.done)
		defer log.Close()
		for {
			status := <-ended
			d.mu.Lock()
			d.pid = 0
			wait, off := time.Until(d.hold), d.off
			d.mu.Unlock()
			if off {
				return
			}
			fmt.Fprintf(os.Stderr, "%s ended (exit %d, signal %v), is started again\n", d.name, status.ExitStatus(), status.Signal())
			time.Sleep(max(wait, time.Second))
			for {
				if ended, err = d.start(log); err == nil {
					break
				}
				if errors.Is(err, errStopped) {
					return
				}
				fmt.Fprintln(os.Stderr, err)
				time.Sleep(time.Second)
			}
		}
	}()
	return d, nil
}

func (d *daemon) start(log *os.File) (<-chan unix.WaitStatus, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return nil, errStopped
	}
	pid, ended, err := d.k.start(d.argv, log)
	d.pid = pid
	return ended, err
}

var errStopped = errors.New("stopped for good")

// pause stops the program for a while: it stays but answers nothing.
func (d *daemon) pause(wait time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	pid := d.pid
	if err := signalProcess(d.name, pid, unix.SIGSTOP); err != nil {
		return err
	}
	time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.pid == pid {
			_ = signalProcess(d.name, pid, unix.SIGCONT)
		}
	})
	return nil
}

// kill kills the program and starts it again only after a while.
func (d *daemon) kill(wait time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold = time.Now().Add(wait)
	return signalProcess(d.name, d.pid, unix.SIGKILL)
}

// stop ends the program for good.
func (d *daemon) stop() {
	d.mu.Lock()
	d.off = true
	_ = signalProcess(d.name, d.pid, unix.SIGKILL)
	d.mu.Unlock()
	<-d.done
}

func signalProcess(name string, pid int, signal unix.Signal) error {
	if pid == 0 {
		return fmt.Errorf("%s does not run", name)
	}
	if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s: %w", name, err)
	}
	return nil
}

// nodeEnv is the environment of every program of the cluster: nothing of the
// caller's, whose proxies and tokens are none of theirs.
func nodeEnv() []string {
	return []string{"PATH=/opt/testbed/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
}
