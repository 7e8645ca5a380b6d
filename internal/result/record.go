package result

import "slices"

// Record is a run as it was read back: what could be read, and a fault for
// everything that could not. No sample is ever guessed or repaired.
type Record struct {
	Run     Run
	Samples []Sample // in the order in which they were sealed
	Faults  []Fault
}

// Fault is a place in a run directory that could not be read, or that
// contradicts another; or one in the files that a run was imported from.
type Fault struct {
	File string // relative to the run directory, or to the imported folder, with slashes
	Line int    // from 1; 0 means the whole file
	Text string // what is wrong and what became of it
	Code string `json:",omitempty"` // of the finding; empty is damage of the run directory itself
	Next string `json:"-"`          // what the reader does then; "" for what the finding's code says
}

// Tools are the programs that took the run's samples, as Tool.String has them:
// that of the start, then those of resumptions in their order.
func (r *Run) Tools(samples []Sample) []string {
	tools := []string{r.Tool.String()}
	for i := range samples {
		if tool := samples[i].Tool; tool != "" && !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// Sealed is the set of samples that the run already has, so that a resumed
// run does not repeat them.
func (r *Record) Sealed() map[Key]bool {
	sealed := make(map[Key]bool, len(r.Samples))
	for i := range r.Samples {
		sealed[r.Samples[i].Key()] = true
	}
	return sealed
}
