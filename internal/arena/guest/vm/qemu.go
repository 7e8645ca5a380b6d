package vm

import (
	"fmt"
	"strings"
)

// program is QEMU's, for the one architecture whose guests are made here.
const program = "qemu-system-x86_64"

// machine is what QEMU is told; its descriptors are those that it inherits.
type machine struct {
	accel         string // AccelKVM or AccelTCG
	cpus          int
	turns         bool  // emulated CPUs take turns on one of the host's
	memory        int64 // bytes
	image         string
	initramfs     int
	console, port int      // sockets
	shares        []share  // besides the root
	squash        bool     // the caller is not root: keep owners out of what is written
	tscKHz        uint64   // frequency of the emulated CPU's counter; 0: unknown
	nics          []string // models of network devices
	bare          bool     // no port and no files: for a probe that only boots
}

// args is QEMU's command line. The microvm machine has no video, no disk and
// no BIOS menus, and a PCI bus for network devices only, which makes it boot
// fastest; what the guest has is memory, CPUs, a console, a port, and the
// host's files.
func (m machine) args() []string {
	accel, cpu := "kvm", "host"
	if m.accel == AccelTCG {
		// Five-level page tables cost an emulated CPU a walk more and bring nothing.
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
		// A comma in a path is written twice.
		path := strings.ReplaceAll(s.Path, ",", ",,")
		args = append(args,
			"-fsdev", fmt.Sprintf("local,id=%s,path=%s,security_model=%s,multidevs=remap", s.Tag, path, model),
			"-device", fmt.Sprintf("virtio-9p-device,fsdev=%s,mount_tag=%s", s.Tag, s.Tag),
		)
	}
	return append(args, nicArgs(m.nics)...)
}

// initMark in the kernel's command line becomes a variable of init's
// environment, by which this program knows that it is a guest's init.
const initMark = "CNIBENCH_GUEST_INIT"

// commandLine returns the kernel's.
func (m machine) commandLine() string {
	words := []string{
		initMark + "=1",
		"console=ttyS0", "quiet", // warnings and worse
		"panic=-1",   // a panic ends QEMU at once
		"reboot=t,f", // by triple fault: there is no keyboard controller
		"random.trust_cpu=on", "cryptomgr.notests", "nokaslr",
		"i8042.noaux", "i8042.nokbd",
	}
	if m.accel == AccelTCG {
		// Timers and TSCs of an emulated CPU agree, but the kernel's tests of
		// that time out on a busy host. An emulated CPU has no secrets to lose.
		words = append(words, "tsc=reliable", "no_timer_check", "mitigations=off")
		if m.tscKHz > 0 {
			words = append(words, fmt.Sprintf("tsc_early_khz=%d", m.tscKHz))
		}
	}
	return strings.Join(words, " ")
}
