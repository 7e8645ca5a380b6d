package vm

import "fmt"

// Models of network devices, as QEMU calls them.
const (
	virtioNIC = "virtio-net-pci"
	e1000NIC  = "e1000"
)

// NICModels returns the network devices that a guest can have: virtio's, with
// virtioQueues queues and offloads, as clouds have, and Intel's 82540EM, with
// one queue and rings whose size can be set.
func NICModels() []string { return []string{virtioNIC, e1000NIC} }

// nicDrivers returns the kernel's modules for the models, in their order.
func nicDrivers(models []string) []string {
	drivers := make([]string, len(models))
	for i, model := range models {
		drivers[i] = map[string]string{virtioNIC: "virtio_net", e1000NIC: "e1000"}[model]
	}
	return drivers
}

// virtioQueues is less than most machines have CPUs, so that there is
// something to steer.
const virtioQueues = 2

// nicArgs are QEMU's arguments for the guest's network devices. What is behind
// them ends there: several queues need a tap device, which QEMU makes in a
// network namespace that it has for itself (see ownNetwork), one queue a hub
// that has no other port.
func nicArgs(models []string) []string {
	var args []string
	for i, model := range models {
		backend := fmt.Sprintf("hubport,id=net%d,hubid=%d", i, i)
		device := fmt.Sprintf("%s,netdev=net%d,mac=52:54:00:00:00:%02x", model, i, i+1)
		if model == virtioNIC {
			backend = fmt.Sprintf("tap,id=net%d,ifname=tap%d,script=no,downscript=no,queues=%d", i, i, virtioQueues)
			// An interrupt for each direction of each queue, one for the
			// configuration and one for the control queue.
			device += fmt.Sprintf(",mq=on,vectors=%d", 2*virtioQueues+2)
		}
		args = append(args, "-netdev", backend, "-device", device)
	}
	return args
}
