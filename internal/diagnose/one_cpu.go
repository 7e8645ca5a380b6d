package diagnose

import (
	"fmt"
	"strconv"
	"strings"
)

// oneCPU: one CPU handles all packets while others idle.
func oneCPU() Cause {
	return Cause{
		ID: "one-cpu", Summary: "one CPU handles all soft interrupts of a node while others are idle",
		Predicts: "bulk of a node flat whatever the number of connections; the CPU full, others idle",
		Proof:    "rps_cpus of the node's devices, all CPUs",
		Remedy:   "Spread the queues: irqbalance, RSS or RPS (cnibench tune plan rps).",
		Source:   "irqbalance#122, #275; Documentation/networking/scaling.rst",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				p := c.path(PodPod, back)
				if p == nil {
					continue
				}
				probe := p.Probes[Bulk]
				for _, n := range c.nodes() {
					full, idle, cpus := 0.0, 0.0, 0
					fullest := -1
					for cpu := range n.CPUs {
						soft, all, rest := 0.0, 0.0, 0.0
						for key, v := range probe.Counters[n.Endpoint] {
							if !strings.HasPrefix(key, "node_cpu_seconds{") || !strings.Contains(key, `cpu="`+strconv.Itoa(cpu)+`"`) || strings.Contains(key, `mode="guest`) {
								continue
							}
							all += v
							switch {
							case strings.Contains(key, `mode="softirq"`):
								soft = v
							case strings.Contains(key, `mode="idle"`):
								rest = v
							}
						}
						if all == 0 {
							continue
						}
						cpus++
						if soft/all > full {
							full, fullest = soft/all, cpu
						}
						idle = max(idle, rest/all)
					}
					if cpus < 2 {
						continue
					}
					a.Excluded = "no CPU is full of soft interrupts while another one idles"
					if full < fullCPU || idle < 0.4 {
						continue
					}
					x := Claim{State: Suspected, Node: n.Endpoint, Direction: c.direction(back), Explains: 0.6,
						Text:     fmt.Sprintf("CPU %d of %s handles all packets (%s in soft interrupts) while another one is idle for %s", fullest, n.Endpoint, percent(full), percent(idle)),
						Evidence: []Evidence{{"softirq", percent(full), fmt.Sprintf("%s CPU %d", n.Endpoint, fullest)}, {"idle", percent(idle), n.Endpoint}}}
					if c.slowBulk(back) {
						x.State = Supported
					}
					if masked := findSteered(c, n); masked != "" {
						x.Device = masked
						x.Evidence = append(x.Evidence, Evidence{"rps_cpus", "one CPU", n.Endpoint + " " + masked})
					}
					a.Claims = append(a.Claims, x)
				}
			}
			return a
		},
	}
}

// findSteered returns a device of the path whose packets are all steered to one CPU.
func findSteered(c *Case, n *Snapshot) string {
	for _, name := range c.on(n.Endpoint) {
		d := n.device(name)
		if d == nil {
			continue
		}
		for _, mask := range d.RPS {
			if v, err := strconv.ParseUint(strings.ReplaceAll(mask, ",", ""), 16, 64); err == nil && v != 0 && v&(v-1) == 0 {
				return name
			}
		}
	}
	return ""
}
