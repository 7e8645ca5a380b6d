package diagnose

import (
	"fmt"
	"slices"
)

// proxies are containers that a mesh puts into a pod.
var proxies = []string{"istio-proxy", "linkerd-proxy", "envoy-sidecar", "kuma-sidecar", "consul-dataplane", "aws-appmesh-envoy", "ztunnel"}

// proxyInPath: a proxy of a mesh takes the pod's connections.
func proxyInPath() Cause {
	return Cause{
		ID: "proxy-in-path", Summary: "a mesh's proxy takes the pod's connections",
		Predicts: "requests of that pod slower by two hops through a process; hostNetwork pods unharmed",
		Remedy:   "Give the proxy more CPU or leave that port out of the mesh (traffic.sidecar.istio.io/excludeInboundPorts).",
		Source:   "istio#22845, #59628",
		look: func(c *Case) Answer {
			a := Answer{}
			for i := range c.Snapshots {
				s := &c.Snapshots[i]
				if !s.Pod || s.Containers == nil {
					continue
				}
				a.Excluded = "no pod has a mesh's proxy"
				if k := slices.IndexFunc(s.Containers, func(name string) bool { return slices.Contains(proxies, name) }); k >= 0 {
					a.Claims = append(a.Claims, Claim{State: Suspected, Node: s.Node, Pod: s.Endpoint, Explains: 0.4,
						Text:     fmt.Sprintf("connections of %s pass the proxy %s", s.Endpoint, s.Containers[k]),
						Evidence: []Evidence{{"container", s.Containers[k], s.Endpoint}}})
				}
			}
			return a
		},
	}
}
