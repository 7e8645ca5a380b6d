package tune

// NotInLab is why the lab cannot measure the setting, whatever it is told; ""
// where it can.
func (s Setting) NotInLab() string {
	if s.Never != "" {
		return "never offered"
	}
	return notInLab()[s.Name]
}

func notInLab() map[string]string {
	const (
		daemon   = "the lab hides the machine's /run, so no daemon can be asked from inside"
		hardware = "no packet of the lab crosses a real interface"
		first    = "the machine has it only in its first network namespace, and the lab is not in that"
		advice   = "it is yours to do: cnibench sets nothing"
	)
	return map[string]string{
		tuned.Name: daemon, irqbalance.Name: daemon,
		rings.Name: hardware, irq.Name: hardware,
		rfs.Name: first, "socket-limits": first,
		mtu.Name:           "bench takes the MTU of the lab's network from --mtu: compare two runs",
		serverThreads.Name: advice, numa.Name: advice,
		ovnLoadBalancer.Name: advice, ovnSkipConntrack.Name: advice, fastPath.Name: advice, ovsModule.Name: advice, sttTunnel.Name: advice,
	}
}
