package vm

import (
	"fmt"
	"strings"
)

// QEMU's names of the models of network devices.
const (
	virtioNIC = "virtio-net-pci"
	e1000NIC  = "e1000"
)

// NICModels returns the models that a guest can have: virtio, with virtioQueues queues and
// offloads, as in clouds, and Intel's 82540EM, with one queue and rings whose size can be set.
func NICModels() []string { return []string{virtioNIC, e1000NIC} }

// NICDriver returns the kernel's driver of the model, which is also the name of its module.
func NICDriver(model string) string {
	return map[string]string{virtioNIC: "virtio_net", e1000NIC: "e1000"}[model]
}

// nicDrivers returns the kernel's modules for the models, in the same order.
func nicDrivers(models []string) []string {
	drivers := make([]string, len(models))
	for i, model := range models {
		drivers[i] = NICDriver(model)
	}
	return drivers
}

// virtioQueues is smaller than the number of CPUs of most machines, so that steering has an
// effect.
const virtioQueues = 2

// MaxNICs is the largest number of a guest's network devices: the slots of its PCI bus, without
// the bus itself.
const MaxNICs = 31

// SteeringCPUs is the number of CPUs with which a guest has more CPUs than any of its network
// devices has queues.
const SteeringCPUs = 2 * virtioQueues

// nicArgs returns QEMU's arguments for the guest's network devices. Devices of one model are
// connected with each other and with nothing else. Devices with several queues need tap
// devices, in a network namespace of QEMU's own (see ownNetwork and joined); devices with one
// queue use a hub.
func nicArgs(models []string) []string {
	var args []string
	for i, model := range models {
		backend := fmt.Sprintf("hubport,id=net%d,hubid=0", i)
		device := fmt.Sprintf("%s,netdev=net%d,mac=52:54:00:00:00:%02x", model, i, i+1)
		if model == virtioNIC {
			backend = fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no,queues=%d", i, tap(i), virtioQueues)
			// One interrupt for each direction of each queue, one for the configuration and one
			// for the control queue.
			device += fmt.Sprintf(",mq=on,vectors=%d", 2*virtioQueues+2)
		}
		args = append(args, "-netdev", backend, "-device", device)
	}
	return args
}

// tap returns the name of the tap device of the guest's i-th device.
func tap(i int) string { return fmt.Sprintf("tap%d", i) }

// taps returns the names of all tap devices.
func taps(models []string) []string {
	var names []string
	for i, model := range models {
		if model == virtioNIC {
			names = append(names, tap(i))
		}
	}
	return names
}

// notJoined is what joinTaps prints if it fails, after the output of ip(8).
const notJoined = "the guest's network devices can't be joined"

// joinTaps is a script that connects tap devices by a bridge and then executes the program in
// its arguments. The bridge and the taps have no addresses and send nothing themselves; frames
// of every MTU pass.
const joinTaps = `PATH=$PATH:/usr/sbin:/sbin
join() {
	ip link add switch type bridge mcast_snooping 0 &&
	ip link set switch addrgenmode none &&
	ip link set switch up || return
	for tap in %s; do
		ip tuntap add $tap mode tap multi_queue &&
		ip link set $tap addrgenmode none mtu 65521 master switch &&
		ip link set $tap up || return
	done
}
join || { echo "` + notJoined + `" >&2; exit 1; }
exec "$0" "$@"`

// buildCommand returns the command line. If there are several taps, it begins with joinTaps.
func buildCommand(models, argv []string) []string {
	names := taps(models)
	if len(names) < 2 {
		return argv
	}
	return append([]string{"sh", "-c", fmt.Sprintf(joinTaps, strings.Join(names, " "))}, argv...)
}
