package tune

import "slices"

// NotInLab is why the lab cannot measure the setting, whatever it is told; ""
// where it can.
func (s Setting) NotInLab() string {
	if s.Never != "" {
		return "never offered"
	}
	return notInLab()[s.Name]
}

// NeedsNIC reports whether the lab can measure the setting only where the nodes have
// network devices of a guest: it is set on them, or in the guest's first network namespace.
func (s Setting) NeedsNIC() bool {
	return slices.Contains([]string{rings.Name, irq.Name, rfs.Name}, s.Name)
}

func notInLab() map[string]string {
	const (
		daemon   = "the lab hides the machine's /run, so no daemon can be asked from inside"
		withNIC  = "; a guest's network devices have a place for it: --arena microvm --nic MODEL"
		hardware = "no packet of the lab crosses a real interface" + withNIC
		first    = "the machine has it only in its first network namespace, and the lab is not in that"
		advice   = "it is yours to do: cnibench sets nothing"
	)
	return map[string]string{
		tuned.Name: daemon, irqbalance.Name: daemon,
		rings.Name: hardware, irq.Name: hardware,
		rfs.Name: first + withNIC, "socket-limits": first,
		mtu.Name:           "bench takes the MTU of the lab's network from --mtu: compare two runs",
		serverThreads.Name: advice, numa.Name: advice,
		ovnLoadBalancer.Name: advice, ovnSkipConntrack.Name: advice, fastPath.Name: advice, ovsModule.Name: advice, sttTunnel.Name: advice,
	}
}
