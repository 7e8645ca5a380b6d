package diagnose

import (
	"fmt"
	"strings"
)

// policy: a NetworkPolicy drops what pods send.
func policy() Cause {
	return Cause{
		ID: "policy", Summary: "a NetworkPolicy selects the pods and drops or proxies",
		Predicts: "connections between those pods fail or never answer; other pods unharmed",
		Remedy:   "kubectl get networkpolicy -A; cnibench check policy",
		Source:   "kubernetes.io/docs/concepts/services-networking/network-policies",
		look: func(c *Case) Answer {
			if c.Arena != "kube" {
				return Answer{}
			}
			for _, back := range directions {
				failed, ok := c.figure(PodPod, back, Connect, Failed)
				if ok && failed >= 0.9 && len(c.Policies) > 0 {
					return Answer{Claims: []Claim{{State: Suspected, Direction: c.direction(back), Explains: 0.8,
						Text:     fmt.Sprintf("no connection from pod to pod is made, and %d policies select the pods", len(c.Policies)),
						Evidence: []Evidence{{"connections that failed", percent(failed), c.direction(back)}, {"policies", strings.Join(c.Policies, ", "), "the cluster"}}}}}
				}
			}
			if made, ok := c.figure(PodPod, false, Connect, Failed); !ok || made >= 0.9 {
				return Answer{}
			}
			return Answer{Excluded: "connections from pod to pod are made"}
		},
	}
}
