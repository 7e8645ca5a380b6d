package diagnose

import "fmt"

// steal: the hypervisor takes CPU time.
func steal() Cause {
	return Cause{
		ID: "steal", Summary: "the hypervisor gives a node's CPU time to others",
		Predicts: "everything of that node slow and uneven, the nodes' own traffic too",
		Remedy:   "Move the node, or take an instance whose CPUs are its own.",
		Source:   "/proc/stat steal",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, n := range c.nodes() {
				worst, sum, all := 0.0, 0.0, 0
				for _, p := range c.Paths {
					for _, probe := range p.Probes {
						if share, ok := probe.cpuShare(n.Endpoint, "steal"); ok {
							sum, all, worst = sum+share, all+1, max(worst, share)
						}
					}
				}
				if all == 0 {
					continue
				}
				mean := sum / float64(all)
				a.Excluded = fmt.Sprintf("%s of the CPU time is stolen", percent(mean))
				if mean < stolen {
					continue
				}
				a.Claims = append(a.Claims, Claim{State: Supported, Node: n.Endpoint, Explains: min(0.9, 0.4+mean), underlay: true,
					Text:     fmt.Sprintf("%s of %s's CPU time is stolen by the hypervisor", percent(mean), n.Endpoint),
					Evidence: []Evidence{{"steal", percent(mean), n.Endpoint}}})
			}
			return a
		},
	}
}
