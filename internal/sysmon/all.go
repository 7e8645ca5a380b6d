package sysmon

// Samplers lists the samplers of runs, in the order of a snapshot and of the written file.
// A new sampler needs a file of its own, and a line here or in All.
func Samplers() []Sampler {
	return []Sampler{
		cpu(),
		memory(),
		network(),
		tcpudp(),
		tcpext(),
		softnet(),
		self(),
		pressure(),
		conntrack(),
		conntrackStat(),
		cgroup(),
		energy(),
	}
}

// All lists all samplers but ProcessGroups, which needs the groups as a parameter.
func All() []Sampler {
	return append(Samplers(),
		disk(),
		softirqs(),
		interrupts(),
		frequency(),
	)
}

// OfScope returns the samplers that a recorder of that scope runs.
func OfScope(scope Scope, samplers []Sampler) []Sampler {
	var list []Sampler
	for _, s := range samplers {
		if s.Scope == ScopePod || scope == ScopeNode {
			list = append(list, s)
		}
	}
	return list
}
