package sysmon

// Samplers lists what can be recorded, in the order of a snapshot and of the
// written file. To add one: its file, and its line here.
func Samplers() []Sampler {
	return []Sampler{
		cpu(),
		memory(),
		network(),
		tcpudp(),
		tcpext(),
		softnet(),
		self(),
	}
}
