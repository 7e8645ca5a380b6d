package tune

import (
	"fmt"
	"math/bits"
	"strconv"
)

// rfsTable is the key of the number of flows that the machine remembers.
const rfsTable = "net.core.rps_sock_flow_entries"

// rfs sends a packet to the core on which its program runs.
var rfs = Setting{
	Name:    "rfs",
	Summary: "receive flow steering: a table of flows, and each receive queue's share of it",
	Why:     "a packet is handled on the core whose program reads it",
	Studies: []string{"2016"},
	Source:  "kernel Documentation/networking/scaling.rst, RFS",
	Cost:    "four bytes a flow, and a look-up a packet",
	Avoid:   "without RPS, which it steers; if programs move between cores all the time",
	Scope:   ScopeMachine,
	Params:  []Param{{"flows", "60000", "connections at once; rounded up to a power of two"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		flows, err := strconv.ParseUint(p["flows"], 10, 24)
		if err != nil || flows == 0 {
			return Proposal{}, fmt.Errorf("rfs.flows %q: want a number from 1 to 16777215", p["flows"])
		}
		entries := powerOfTwo(flows)
		table, err := f.change(sysctl(rfsTable), strconv.FormatUint(entries, 10))
		if err != nil {
			return Proposal{}, err
		}
		proposal, err := f.each(func(n NIC) ([]Change, error) {
			if _, err := f.rpsCPUs(n); err != nil {
				return nil, err
			}
			share := powerOfTwo(max(entries/uint64(max(n.RX, 1)), 1))
			var changes []Change
			for q := range n.RX {
				c, err := f.change(file(fmt.Sprintf("%s%s/queues/rx-%d/rps_flow_cnt", netClass, n.Name, q)), strconv.FormatUint(share, 10))
				if err != nil {
					return nil, err
				}
				changes = append(changes, c)
			}
			return changes, nil
		})
		if err != nil {
			return proposal, err
		}
		proposal.Changes = append([]Change{table}, proposal.Changes...)
		return proposal, nil
	},
}

// powerOfTwo rounds n, at least 1, up to a power of two, as the kernel does for RFS's tables.
func powerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }
