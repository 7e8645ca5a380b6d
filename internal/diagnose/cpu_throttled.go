package diagnose

import (
	"fmt"
	"strings"
)

// Shares of time that count.
const (
	throttledPeriods = 0.05 // of the scheduler's periods of a pod
	busyNode         = 0.85 // of a node's CPU time while nothing is sent
	fullCPU          = 0.85 // of one CPU in soft interrupts
	stolen           = 0.05
)

// cpuThrottled: a pod is stopped by its CPU limit.
func cpuThrottled() Cause {
	return Cause{
		ID: "cpu-throttled", Summary: "a pod's CPU quota is used up",
		Predicts: "everything of that pod slow, latency in steps of the period (100 ms); other pods of the node and the nodes unharmed",
		Remedy:   "Raise or remove the pod's CPU limit.",
		Source:   "k8s#67577, goldpinger#83; cgroup cpu.stat nr_throttled",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				periods, ok := c.growthOver(s.Endpoint, "container_cpu_cfs_periods")
				throttled, _ := c.growthOver(s.Endpoint, "container_cpu_cfs_throttled_periods")
				time, _ := c.growthOver(s.Endpoint, "container_cpu_cfs_throttled_seconds")
				if !ok && s.CPULimit == 0 {
					continue
				}
				if !s.Yours || ok {
					a.Excluded = "no pod that was looked at was throttled"
				}
				if periods < 5 || throttled < throttledPeriods*periods {
					continue
				}
				share := throttled / periods
				limit := "its limit"
				if s.CPULimit > 0 {
					limit = fmt.Sprintf("its limit of %.0fm", 1000*s.CPULimit)
				}
				next := "kubectl set resources …: raise or remove limits.cpu of that pod"
				if namespace, name, is := strings.Cut(s.Endpoint, "/"); is {
					next = fmt.Sprintf("kubectl -n %s get pod %s -o jsonpath='{.metadata.ownerReferences[0].kind} {.spec.containers[*].resources}': raise or remove limits.cpu there", namespace, name)
				}
				a.Claims = append(a.Claims, Claim{State: Supported, Node: s.Node, Pod: s.Endpoint, Explains: min(0.95, 0.5+share), underlay: true,
					Text: fmt.Sprintf("%s was stopped in %s of its periods by %s: not the network", s.Endpoint, percent(share), limit),
					Evidence: []Evidence{{"nr_throttled", fmt.Sprintf("+%.0f of %.0f periods", throttled, periods), s.Endpoint},
						{"throttled time", seconds(time), s.Endpoint}},
					Next: next,
				})
			}
			return a
		},
	}
}

// cpuShare returns the share of the node's CPU time in those modes during a probe.
func (p *Probe) cpuShare(endpoint string, modes ...string) (share float64, ok bool) {
	all, in := 0.0, 0.0
	for key, v := range p.Counters[endpoint] {
		rest, is := strings.CutPrefix(key, "node_cpu_seconds{")
		if !is || strings.Contains(rest, `mode="guest`) {
			continue
		}
		all += v
		for _, mode := range modes {
			if strings.Contains(rest, `mode="`+mode+`"`) {
				in += v
			}
		}
	}
	return in / max(1e-9, all), all > 0
}
