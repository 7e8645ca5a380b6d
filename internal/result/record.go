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
	Text string // what is wrong, and what Load did about it
	Code string `json:",omitempty"` // of the finding; empty if the run directory itself is damaged
	Next string `json:"-"`          // what a person should do; empty: what the finding's code usually asks for
}

// Tools returns Tool.String of the programs that took the run's samples: first the program
// that began the run, then those that resumed it, in order.
func (r *Run) Tools(samples []Sample) []string {
	tools := []string{r.Tool.String()}
	for i := range samples {
		if tool := samples[i].Tool; tool != "" && !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// SealedKeys returns the keys of the samples that the run already has. A resumed run does not
// repeat them.
func (r *Record) SealedKeys() map[Key]bool {
	sealed := make(map[Key]bool, len(r.Samples))
	for i := range r.Samples {
		sealed[r.Samples[i].Key()] = true
	}
	return sealed
}
