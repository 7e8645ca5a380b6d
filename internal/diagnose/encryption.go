package diagnose

import "fmt"

// encryption: a cipher costs what is slow.
func encryption() Cause {
	return Cause{
		ID: "encryption", Summary: "a cipher is on the path, often on one CPU",
		Predicts: "bulk of pods limited by one CPU; round trips little longer",
		Remedy:   "Spread the work: several flows; for WireGuard /sys/class/net/DEVICE/threaded=1.",
		Source:   "calico#9223",
		look: func(c *Case) Answer {
			kind, device := c.transport()
			if kind != "wireguard" {
				if len(c.carriers(false)) == 0 {
					return Answer{}
				}
				return Answer{Excluded: "no device of the path encrypts"}
			}
			for _, back := range directions {
				if c.slowBulk(back) {
					from, _ := c.ends(back)
					return Answer{Claims: []Claim{{State: Suspected, Node: from, Device: device, Direction: c.direction(back), Explains: 0.5,
						Text:     fmt.Sprintf("%s of %s encrypts what pods send", device, from),
						Evidence: []Evidence{{"device", kind, from + " " + device}}}}}
				}
			}
			return Answer{Excluded: "pods are as fast as encryption lets them"}
		},
	}
}
