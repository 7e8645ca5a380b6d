package lab

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What calls itself a lab's init is followed only where the effective user
// started it.
func TestFindRunningOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a process of another user needs root: sudo make test")
	}
	for name, uid := range map[string]int{"own": 0, "a stranger's": 65534} {
		t.Run(name, func(t *testing.T) {
			init := startInit(t, uid)
			labs, err := FindRunning()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(labs, func(r Running) bool { return r.Init == init.Pid })
			if found := i >= 0; found != (uid == 0) {
				t.Fatalf("lab of user %d: found %v", uid, found)
			} else if !found {
				return
			}
			// The number is another process' by now: no lab, or another lab.
			for _, r := range []Running{{Init: os.Getpid(), pidNS: labs[i].pidNS}, {Init: init.Pid, pidNS: "pid:[1]"}} {
				if err := r.Kill(); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("kill %+v: error %v", r, err)
				}
			}
			if err := labs[i].Kill(); err != nil {
				t.Error(err)
			}
			if state, err := init.Wait(); err != nil || state.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Errorf("the lab's init ended with %v, %v", state, err)
			}
		})
	}
}

// startInit starts a process that looks like the init of that user's lab.
func startInit(t *testing.T, uid int) *os.Process {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Dir = "/"
	cmd.Env = []string{containedEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
		Pdeathsig:   unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	})
	return cmd.Process
}
