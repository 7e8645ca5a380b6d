package vm

import (
	"fmt"
	"strings"
)

// Models of network devices, as QEMU calls them.
const (
	virtioNIC = "virtio-net-pci"
	e1000NIC  = "e1000"
)

// NICModels returns the network devices that a guest can have: virtio's, with
// virtioQueues queues and offloads, as clouds have, and Intel's 82540EM, with
// one queue and rings whose size can be set.
func NICModels() []string { return []string{virtioNIC, e1000NIC} }

// NICDriver returns the kernel's driver of the model, which is the name of its module, too.
func NICDriver(model string) string {
	return map[string]string{virtioNIC: "virtio_net", e1000NIC: "e1000"}[model]
}

// nicDrivers returns the kernel's modules for the models, in their order.
func nicDrivers(models []string) []string {
	drivers := make([]string, len(models))
	for i, model := range models {
		drivers[i] = NICDriver(model)
	}
	return drivers
}

// virtioQueues is less than most machines have CPUs, so that there is
// something to steer.
const virtioQueues = 2

// MaxNICs is how many network devices a guest has room for: the slots of its PCI bus,
// less that of the bus itself.
const MaxNICs = 31

// SteeringCPUs is how many CPUs a guest needs so that each of its network devices has
// fewer queues than there are CPUs.
const SteeringCPUs = 2 * virtioQueues

// nicArgs are QEMU's arguments for the guest's network devices. Those of one model
// are joined, and reach nothing else: several queues need tap devices, in a network
// namespace that QEMU has for itself (see ownNetwork and joined), one queue a hub.
func nicArgs(models []string) []string {
	var args []string
	for i, model := range models {
		backend := fmt.Sprintf("hubport,id=net%d,hubid=0", i)
		device := fmt.Sprintf("%s,netdev=net%d,mac=52:54:00:00:00:%02x", model, i, i+1)
		if model == virtioNIC {
			backend = fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no,queues=%d", i, tap(i), virtioQueues)
			// An interrupt for each direction of each queue, one for the
			// configuration and one for the control queue.
			device += fmt.Sprintf(",mq=on,vectors=%d", 2*virtioQueues+2)
		}
		args = append(args, "-netdev", backend, "-device", device)
	}
	return args
}

// tap is the name of the device behind the guest's i-th.
func tap(i int) string { return fmt.Sprintf("tap%d", i) }

// taps are the names of all.
func taps(models []string) []string {
	var names []string
	for i, model := range models {
		if model == virtioNIC {
			names = append(names, tap(i))
		}
	}
	return names
}

// notJoined is what joinTaps says when it fails, after the words of ip(8).
const notJoined = "the guest's network devices can't be joined"

// joinTaps is a script that joins tap devices by a bridge and becomes the program in
// its arguments. The bridge and the taps have no addresses and say nothing themselves;
// frames of every MTU pass.
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

// joined returns the command line, which starts by joining the taps where there are
// several.
func joined(models, argv []string) []string {
	names := taps(models)
	if len(names) < 2 {
		return argv
	}
	return append([]string{"sh", "-c", fmt.Sprintf(joinTaps, strings.Join(names, " "))}, argv...)
}
