package sysmon

// Samplers lists what runs record, in the order of a snapshot and of the
// written file. To add one: its file, and its line here or in All.
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
		energy(),
	}
}

// All lists what can be recorded; ProcessGroups, which must be told the
// groups, comes on top.
func All() []Sampler {
	return append(Samplers(),
		disk(),
		softirqs(),
		interrupts(),
		frequency(),
	)
}

// OfScope is those of the samplers that a recorder of that scope runs.
func OfScope(scope Scope, samplers []Sampler) []Sampler {
	var list []Sampler
	for _, s := range samplers {
		if s.Scope == ScopePod || scope == ScopeNode {
			list = append(list, s)
		}
	}
	return list
}
