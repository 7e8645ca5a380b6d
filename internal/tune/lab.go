package tune

import "slices"

// NotInLab returns why no lab can measure the setting; "" if one can.
func (s Setting) NotInLab() string { return notInLab()[s.Name] }

// NeedsNIC reports whether the lab can measure the setting only if the nodes have a guest's
// network devices. It is set on these devices or in the guest's first network namespace.
func (s Setting) NeedsNIC() bool {
	return slices.Contains([]string{rings.Name, irq.Name, rfs.Name}, s.Name)
}

func notInLab() map[string]string {
	const (
		daemon   = "the lab hides the machine's /run, so its daemons cannot be reached from inside"
		withNIC  = "; measure it on a guest's network devices: --arena microvm --nic MODEL"
		hardware = "no packet of the lab crosses a real interface" + withNIC
		first    = "the machine has it only in its first network namespace, and the lab runs in others"
	)
	return map[string]string{
		tuned.Name: daemon, irqbalance.Name: daemon,
		rings.Name: hardware, irq.Name: hardware,
		rfs.Name: first + withNIC, "socket-limits": first,
	}
}
