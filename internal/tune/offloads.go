package tune

import "slices"

// offloads lets the interface, or the stack next to it, handle many packets as one.
var offloads = Setting{
	Name:    "offloads",
	Summary: "checksum and segmentation offloads (TSO, GSO, GRO and those of tunnels) on, if they can be set",
	Why:     "the stack handles 64 KiB at a time instead of every packet; one checksum flag took a VXLAN network from 9 Gbit/s to 0.3",
	Studies: []string{"2024"},
	Source:  "kernel Documentation/networking/segmentation-offloads.rst",
	Cost:    "packets are larger inside the machine than on the wire; GRO waits within one poll for packets to join",
	Avoid:   "if a product switched one off because of a driver's or kernel's bug: look for corrupted checksums first",
	Scope:   ScopeNamespace,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		return f.each(func(n NIC) ([]Change, error) {
			if f.m.NICs == nil {
				return nil, notApplicable("this machine's interfaces cannot be read")
			}
			features, err := f.m.NICs.Features(n.Name)
			if err != nil {
				return nil, notApplicable("%s does not tell its offloads: %v", n.Name, err)
			}
			var changes []Change
			for _, name := range offloadNames {
				on, settable := features[name]
				if name == "rx-gro" && n.Kind == kindVeth { // off by default: what arrives there was joined before
					settable = false
				}
				if settable {
					changes = append(changes, Change{Place{Feature, n.Name + " " + name}, onOff(on), "on"})
				}
			}
			if len(changes) == 0 {
				return nil, notApplicable("%s has no offloads that can be set", n.Name)
			}
			return changes, nil
		})
	},
}

// offloadNames lists the kernel's names (ETH_SS_FEATURES); those that others need come
// first. LRO is left out because it breaks forwarding.
var offloadNames = slices.Concat(
	[]string{"rx-checksum", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6", "tx-scatter-gather"},
	[]string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation", "tx-udp-segmentation", "rx-gro"},
	[]string{"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-gre-segmentation", "tx-ipxip4-segmentation"},
)
