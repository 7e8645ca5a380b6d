package diagnose

import (
	"fmt"
	"strings"
)

// windowShare is the share of its busy time that TCP may wait for a window.
const windowShare = 0.4

// windowLimited: TCP waits for a window or a buffer and not for the path.
func windowLimited() Cause {
	return Cause{
		ID: "window-limited", Summary: "TCP waits for the receiver's window or its own send buffer",
		Predicts: "one connection slow in proportion to the round trip, several together not; nothing is lost",
		Proof:    "net.ipv4.tcp_rmem and tcp_wmem of the pod as its node has them",
		Remedy:   "Raise net.ipv4.tcp_rmem or tcp_wmem in the pods' namespaces (securityContext.sysctls).",
		Source:   "k8s#125234; SNAP, NSDI 2011; tcp_info tcpi_rwnd_limited, tcpi_sndbuf_limited",
		look: func(c *Case) Answer {
			a := Answer{}
			for _, back := range directions {
				fromPod, toPod := c.pods(back)
				for _, w := range []struct{ figure, key, pod, what string }{
					{RwndLimited, "net.ipv4.tcp_rmem", toPod, "the window of "}, {SndLimited, "net.ipv4.tcp_wmem", fromPod, "the send buffer of "},
				} {
					share, ok := c.figure(PodPod, back, Bulk, w.figure)
					if !ok {
						continue
					}
					host, _ := c.figure(Host, back, Bulk, w.figure)
					if a.Excluded == "" {
						a.Excluded = "TCP does not wait for windows or buffers for longer between pods than between nodes"
					}
					buffer := c.snapshot(w.pod).Sysctls[w.key]
					usual := c.snapshot(c.nodeOf(w.pod)).Sysctls[w.key]
					differs := usual != "" && buffer != "" && largest(buffer) < largest(usual)/2
					if lost, _ := c.lossShare(PodPod, back); lost >= minLoss { // the sender waits for what was lost
						continue
					}
					if slow := c.slowBulk(back); share < windowShare || host >= share/2 && !(differs && slow) || !differs && !slow { // fast nodes wait for windows, too
						continue
					}
					x := Claim{State: Suspected, Node: c.nodeOf(w.pod), Pod: w.pod, Direction: c.direction(back), Explains: min(0.9, share),
						Text:     fmt.Sprintf("TCP waits for %s%s in %s of its time", w.what, w.pod, percent(share)),
						Evidence: []Evidence{{"tcp_info " + w.figure + "_limited", percent(share), c.direction(back)}, {w.key, buffer, w.pod}, {w.key, usual, c.nodeOf(w.pod)}}}
					if differs {
						x.State, x.certain = Supported, true
						x.setting = &Setting{Endpoint: w.pod, What: w.key + " as on its node", Back: back,
							Changes: []Change{{"file", "/proc/sys/" + strings.ReplaceAll(w.key, ".", "/"), usual}}}
						x.Next = fmt.Sprintf("sysctl -w %s=%q   in the pod's namespace (securityContext.sysctls)", w.key, usual)
					}
					a.Claims = append(a.Claims, x)
				}
			}
			return a
		},
	}
}

// largest returns the last number of a sysctl of three.
func largest(text string) (n int) {
	fields := strings.Fields(text)
	if len(fields) > 0 {
		_, _ = fmt.Sscan(fields[len(fields)-1], &n) // no number is 0
	}
	return n
}
