package tune

import (
	"fmt"
	"strconv"
)

// mtu is the reader's: every machine and the switches between them must agree.
var mtu = Setting{
	Name:    "mtu",
	Summary: "jumbo frames on the nodes' network, and the CNI told so where it does not find out",
	Why:     "six times fewer packets for the same bytes; a wrong MTU costs more than any other setting",
	Studies: []string{"2018–2020", "2024"},
	Source:  "the studies' tables of MTU found and set by hand",
	Cost:    "every port on the way must take it, or large packets vanish",
	Avoid:   "when the way to other networks is not under your control",
	Scope:   ScopeMachine,
	Params:  []Param{{"value", "9000", "MTU of the nodes' network, bytes"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		want, err := strconv.Atoi(p["value"])
		if err != nil {
			return Proposal{}, fmt.Errorf("mtu.value: %w", err)
		}
		nics, err := f.nics()
		if err != nil {
			return Proposal{}, err
		}
		var advice []string
		for _, n := range nics {
			have, err := f.number(file(netClass + n.Name + "/mtu"))
			if err != nil {
				return Proposal{}, err
			}
			if have >= want {
				advice = append(advice, fmt.Sprintf("%s has an MTU of %d: check that the pods' is that less the encapsulation", n.Name, have))
				continue
			}
			advice = append(advice, fmt.Sprintf("%s has an MTU of %d: with switches that take %d, set it on all machines at once (ip link set %s mtu %d, then in the network configuration), then in the CNI: Calico, Canal, Kube-router and WeaveNet did not find it by themselves in 2019", n.Name, have, want, n.Name, want))
		}
		return Proposal{Advice: advice}, nil
	},
}
