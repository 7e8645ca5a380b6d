package vm

import (
	"fmt"
	"strings"
)

// program is the QEMU of the only architecture that guests have.
const program = "qemu-system-x86_64"

// machine holds QEMU's settings. Descriptors are those that QEMU inherits.
type machine struct {
	accel         string // AccelKVM or AccelTCG
	cpus          int
	turns         bool  // emulated CPUs take turns on one CPU of the host
	memory        int64 // bytes
	image         string
	initramfs     int
	console, port int      // sockets
	shares        []share  // beside the root
	squash        bool     // the caller is not root: do not store owners of written files
	tscKHz        uint64   // frequency of the emulated CPU's time stamp counter; 0 if unknown
	nics          []string // models of network devices
	bare          bool     // without port and files, for a probe that only boots
}

// args returns QEMU's command line. The microvm machine has no video, disk or BIOS menu, and a
// PCI bus only for network devices, so that it boots fastest. The guest has memory, CPUs, a
// console, a port, and the host's files.
func (m machine) args() []string {
	accel, cpu := "kvm", "host"
	if m.accel == AccelTCG {
		// Five-level page tables make every page walk of an emulated CPU longer and have no use
		// here.
		accel, cpu = "tcg,thread=multi", "max,la57=off"
		if m.turns {
			accel = "tcg,thread=single"
		}
	}
	kind := "microvm,pit=on,pic=on,rtc=on,isa-serial=on,acpi=on"
	if len(m.nics) > 0 {
		kind += ",pcie=on"
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
		"-name", "cnibench", "-machine", kind, "-accel", accel, "-cpu", cpu,
		"-smp", fmt.Sprint(m.cpus), "-m", fmt.Sprintf("%dM", m.memory>>20),
		"-kernel", m.image, "-initrd", fmt.Sprintf("/proc/self/fd/%d", m.initramfs), "-append", m.commandLine(),
		"-chardev", fmt.Sprintf("socket,id=console,fd=%d", m.console), "-serial", "chardev:console",
	}
	if m.bare {
		return args
	}
	args = append(args,
		"-chardev", fmt.Sprintf("socket,id=port,fd=%d", m.port),
		"-device", "virtio-serial-device", "-device", "virtserialport,chardev=port,name=cnibench",
		"-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
		"-device", "virtio-9p-device,fsdev=root,mount_tag="+rootTag,
	)
	model := "passthrough"
	if m.squash {
		model = "none"
	}
	for _, s := range m.shares {
		// QEMU wants a comma in a path twice.
		path := strings.ReplaceAll(s.Path, ",", ",,")
		args = append(args,
			"-fsdev", fmt.Sprintf("local,id=%s,path=%s,security_model=%s,multidevs=remap", s.Tag, path, model),
			"-device", fmt.Sprintf("virtio-9p-device,fsdev=%s,mount_tag=%s", s.Tag, s.Tag),
		)
	}
	return append(args, nicArgs(m.nics)...)
}

// initMark is in the kernel's command line, so the kernel puts it into init's environment. This
// program thereby knows that it is a guest's init.
const initMark = "CNIBENCH_GUEST_INIT"

// commandLine returns the kernel's command line.
func (m machine) commandLine() string {
	words := []string{
		initMark + "=1",
		"console=ttyS0", "quiet", // print warnings and errors only
		"panic=-1",   // QEMU ends at once after a panic
		"reboot=t,f", // by triple fault, since there is no keyboard controller
		"random.trust_cpu=on", "cryptomgr.notests", "nokaslr",
		"i8042.noaux", "i8042.nokbd",
	}
	if m.accel == AccelTCG {
		// The timers and TSCs of an emulated CPU agree, but the kernel's checks of them time
		// out on a busy host. Mitigations protect nothing here.
		words = append(words, "tsc=reliable", "no_timer_check", "mitigations=off")
		if m.tscKHz > 0 {
			words = append(words, fmt.Sprintf("tsc_early_khz=%d", m.tscKHz))
		}
	}
	return strings.Join(words, " ")
}
