package diagnose

import "fmt"

// manyServices is from how many Services on a list of them can be felt.
const manyServices = 1000

// servicesMany: a new connection to a Service searches a long list.
func servicesMany() Cause {
	return Cause{
		ID: "services-many", Summary: "a new connection to a Service searches a long list of Services",
		Predicts: "new connections through a Service slow; established flows through it and connections to pods unharmed",
		Remedy:   "Let kube-proxy use nftables or IPVS, or replace it by eBPF.",
		Source:   "kubernetes.io/blog 2025-02-28 nftables-kube-proxy; k8s#135639",
		look: func(c *Case) Answer {
			a := Answer{}
			service, ok := c.figure(Service, false, Connect, P50)
			pod, ok2 := c.figure(PodPod, false, Connect, P50)
			if !ok || !ok2 {
				return a
			}
			a.Excluded = fmt.Sprintf("a new connection through a Service takes %s, to a pod %s", seconds(service), seconds(pod))
			extra := service - pod
			if extra < 100e-6 || service < 1.6*pod {
				return a
			}
			same, _ := c.figure(Service, false, RTT, P50)
			direct, _ := c.figure(PodPod, false, RTT, P50)
			if same > 1.5*direct {
				return a // established flows suffer, too: something else
			}
			from, _ := c.ends(false)
			x := Claim{State: Suspected, Node: from, Explains: 0.5, Direction: c.direction(false),
				Text: fmt.Sprintf("a new connection through a Service takes %s longer than to its pod", seconds(extra)),
				Evidence: []Evidence{{"new connection through the Service", seconds(service), from}, {"to the pod", seconds(pod), from},
					{"round trip of an established flow", seconds(same) + " against " + seconds(direct), from}}}
			if c.Services >= manyServices {
				x.State = Supported
				x.Evidence = append(x.Evidence, Evidence{"Services", fmt.Sprint(c.Services), "the cluster"})
			} else if chain, rules := c.snapshot(from).longest(); rules >= manyServices {
				x.State = Supported
				x.Evidence = append(x.Evidence, Evidence{"rules", fmt.Sprint(rules), from + " " + chain})
			}
			a.Claims = append(a.Claims, x)
			return a
		},
	}
}
