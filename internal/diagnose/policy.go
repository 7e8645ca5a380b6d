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
			unseen := c.policiesOfYours()
			for _, back := range directions {
				failed, ok := c.figure(PodPod, back, Connect, Failed)
				if ok && failed >= 0.9 && len(c.Policies) > 0 {
					return Answer{Claims: []Claim{{State: Suspected, Direction: c.direction(back), Explains: 0.8,
						Text:     fmt.Sprintf("no connection from pod to pod is made, and %d policies select the pods", len(c.Policies)),
						Evidence: []Evidence{{"connections that failed", percent(failed), c.direction(back)}, {"policies", strings.Join(c.Policies, ", "), "the cluster"}}}}}
				}
			}
			if made, ok := c.figure(PodPod, false, Connect, Failed); !ok || made >= 0.9 {
				return Answer{Unseen: unseen}
			}
			return Answer{Excluded: "connections between pods of this command are made", Unseen: unseen}
		},
	}
}

// policiesOfYours says which policies select the user's pods: what they drop is not
// measured, since nothing is sent from those pods.
func (c *Case) policiesOfYours() *Unseen {
	var why []string
	namespace := ""
	for i := range c.Snapshots {
		if s := &c.Snapshots[i]; s.Yours && len(s.Policies) > 0 {
			namespace, _, _ = strings.Cut(s.Endpoint, "/")
			why = append(why, fmt.Sprintf("%s select %s", strings.Join(s.Policies, ", "), s.Endpoint))
		}
	}
	if why == nil {
		return nil
	}
	return &Unseen{Why: strings.Join(why, "; ") + "; whether they drop or proxy what it sends is not measured",
		Remedy: fmt.Sprintf("kubectl -n %s describe networkpolicy; cnibench check policy tries what policies do here", namespace)}
}
