package vm

import (
	"os"
	"syscall"
)

// ownNetwork makes a process start in a network namespace of its own, which ends with the
// process. An ordinary user needs a user namespace for that, with the same user id inside, in
// which the user may make network devices.
func ownNetwork(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNET
	if os.Geteuid() == 0 {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	// The capability in the namespace must survive the exec of QEMU.
	attr.AmbientCaps = []uintptr{capNetAdmin}
}

// capNetAdmin is CAP_NET_ADMIN (capabilities(7)).
const capNetAdmin = 12
