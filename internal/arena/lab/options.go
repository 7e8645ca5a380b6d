// Package lab is the arena made of network namespaces on one machine. The
// whole lab lives in PID, mount and network namespaces of its own, so it
// touches nothing outside and nothing outlives it. Every contender gets a lab
// built from nothing, which is thrown away afterwards; no piece cleans up.
// Next: contain_linux.go makes the container, up_linux.go a contender.
package lab

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/unit"
)

// The kinds of underlay.
const (
	UnderlayAuto   = "auto"   // what the contender requires, else a switch
	UnderlaySwitch = "switch" // one L2 segment
	UnderlayVPC    = "vpc"    // a router between per-node subnets
)

// How frames cross the underlay.
const (
	OffloadHost = "host" // unsegmented and unchecked, as veth hands them over
	OffloadWire = "wire" // each at most an MTU, as on a cable
)

// CustomID is the contender of a user's own CNI configuration.
const CustomID = "custom"

// CongestionAuto chooses the first of preferredCongestion that a namespace
// may use.
const CongestionAuto = "auto"

// RunDir holds the lab's sockets, locks and configuration files: an empty
// file system in memory over the host's /run, seen by the lab only.
const RunDir = "/run"

// Slice is how long a turn is, and Lead how long its load runs before. Both are short, so that
// there are many turns, and the lead is much the shorter, since it measures nothing. Their
// figures agree with those of long transfers (docs/dev/measurement.md).
const (
	Slice = 50 * time.Millisecond
	Lead  = 20 * time.Millisecond
)

// MaxNodes is how many nodes a lab can have: each has a /24 of pods.
const MaxNodes = 250

// Options is how the lab is built.
type Options struct {
	Nodes      int           // machines of the cluster, 2 or more
	Underlay   string        // auto, switch, vpc
	MTU        int           // of the underlay, bytes
	PodMTU     int           // of the pods, bytes; 0 is what encapsulation leaves of MTU
	LineRate   unit.BitRate  // of each node's link; 0 is unlimited
	Offload    string        // OffloadHost (or empty), OffloadWire
	Congestion string        // TCP congestion control in every namespace
	CPUs       Placement     // CPUs of the measured commands and of everything else
	Custom     *CustomAttach // a user's own CNI configuration, run as contender "custom"
	// NICDriver is the driver of a guest's network devices that are the nodes' uplinks and
	// joined already; "" is veth pairs. One contender is up at a time then.
	NICDriver string
}

// CustomAttach is a CNI network configuration list from a user.
type CustomAttach struct {
	File      string
	Conf      []byte
	Transport string // lab transport that joins the nodes; "" for none
}

// podMTU returns the MTU, bytes, that the contender's pods must have; 0 is what
// the contender's encapsulation leaves of the underlay's MTU.
func (o *Options) podMTU(c *contender.Contender) int {
	if asked := cmp.Or(o.PodMTU, int(c.Datapath.PodMTU)); asked != 0 || !c.Datapath.UnderlayPodMTU {
		return asked
	}
	return o.MTU
}

// Check finds wrong values.
func (o *Options) Check() error {
	switch {
	case o.Nodes < 2 || o.Nodes > MaxNodes:
		return fmt.Errorf("--nodes %d: a lab has 2 to %d nodes", o.Nodes, MaxNodes)
	case o.MTU < 576 || o.MTU > 65535:
		return fmt.Errorf("--mtu %d: an underlay MTU is 576 to 65535 bytes", o.MTU)
	case o.PodMTU != 0 && (o.PodMTU < 576 || o.PodMTU > o.MTU):
		return fmt.Errorf("--pod-mtu %d: the MTU of pods is 576 to the underlay's %d bytes", o.PodMTU, o.MTU)
	case o.LineRate < 0 || (o.LineRate > 0 && o.LineRate < 1e6):
		return fmt.Errorf("--line-rate %v: want 1M or more, such as 10G for 10 Gbit/s, or 0 for no limit", o.LineRate)
	}
	if o.Offload != "" && o.Offload != OffloadHost && o.Offload != OffloadWire {
		return fmt.Errorf("--offload %q: want %s or %s", o.Offload, OffloadHost, OffloadWire)
	}
	switch o.Underlay {
	case UnderlayAuto, UnderlaySwitch, UnderlayVPC:
		return nil
	}
	return fmt.Errorf("--underlay %q: want %s, %s or %s", o.Underlay, UnderlayAuto, UnderlaySwitch, UnderlayVPC)
}

// Feature is a kernel feature that contenders may require.
type Feature struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Option  string `json:"option"` // kernel build option
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`  // why OK is false
	Note    string `json:"note,omitempty"`   // e.g. that a module must be loaded first
	Denied  bool   `json:"denied,omitempty"` // only root may use the feature
}
