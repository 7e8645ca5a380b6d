package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// Case is what was seen of two nodes, their pods and the paths between them. It is what
// `cnibench diagnose --save` writes and what the corpus is made of.
type Case struct {
	Schema string `json:"schema"` // CaseSchema
	Arena  string `json:"arena"`  // lab, kube
	// Contender is the catalogue's, or this-cluster.
	Contender string `json:"contender"`
	Kernel    string `json:"kernel"`
	// MaxRate is the most that bulk was allowed to send, bit/s; 0 is no limit.
	MaxRate float64 `json:"max_rate,omitempty"`
	// Ends are the two nodes; their pods are in Pods, in the same order.
	Ends      []string   `json:"ends"`
	Pods      []string   `json:"pods"`
	Snapshots []Snapshot `json:"snapshots"`
	Paths     []Path     `json:"paths"`
	Trials    []Trial    `json:"trials,omitempty"`
	Policies  []string   `json:"policies,omitempty"` // that select the pods
	// Transport is what carries the pods' packets between nodes, where no device tells it:
	// the kind of a tunnel, or routes.
	Transport string `json:"transport,omitempty"`
	// Services is how many the cluster has.
	Services int      `json:"services,omitempty"`
	Unseen   []Unseen `json:"unseen,omitempty"`
}

// CaseSchema is the version of Case's JSON.
const CaseSchema = "cnibench/diagnose-case/1"

// Snapshot is how an endpoint is set up: a node, or the network namespace of a pod.
type Snapshot struct {
	Endpoint string `json:"endpoint"`
	Node     string `json:"node"`
	// Pod says that the endpoint is a pod.
	Pod     bool     `json:"pod,omitempty"`
	Kernel  string   `json:"kernel,omitempty"`
	CPUs    int      `json:"cpus,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	Qdiscs  []Qdisc  `json:"qdiscs,omitempty"`
	Routes  []Route  `json:"routes,omitempty"`
	// Sysctls are those that decide on speed, by key.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Rules is the number of rules by chain; nil where nobody may count them.
	Rules map[string]int `json:"rules,omitempty"`
	// Neighbours is the number of entries of the neighbour table.
	Neighbours int `json:"neighbours,omitempty"`
	// ConntrackCount and ConntrackMax are of connection tracking; a maximum of 0 is none.
	ConntrackCount int `json:"conntrack_count,omitempty"`
	ConntrackMax   int `json:"conntrack_max,omitempty"`
	// CPULimit is the quota of the endpoint's cgroup in CPUs; 0 is none.
	CPULimit float64   `json:"cpu_limit,omitempty"`
	Resolver *Resolver `json:"resolver,omitempty"`
	// Containers are the names of the pod's containers.
	Containers []string `json:"containers,omitempty"`
	// Yours says that it is a pod of the user: the API server and the kubelet describe it,
	// and nothing is started in it.
	Yours       bool `json:"yours,omitempty"`
	HostNetwork bool `json:"host_network,omitempty"`
	// Ingress and Egress are what bandwidth annotations allow the pod, bit/s; 0: all.
	Ingress float64 `json:"ingress,omitempty"`
	Egress  float64 `json:"egress,omitempty"`
	// Policies are the NetworkPolicies that select the pod.
	Policies []string `json:"policies,omitempty"`
	// Qdisc counters of a later time are in After.
	After []Qdisc `json:"qdiscs_after,omitempty"`
}

// Device is a network interface.
type Device struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // vxlan, veth, bridge, …; "" is a device of hardware
	Driver string `json:"driver,omitempty"`
	MTU    int    `json:"mtu"`
	Master string `json:"master,omitempty"`
	// Features are the offloads by the kernel's names (ethtool -k).
	Features map[string]bool `json:"features,omitempty"`
	RXQueues int             `json:"rx_queues,omitempty"`
	// RPS is the mask of CPUs of each receive queue.
	RPS []string `json:"rps,omitempty"`
	// Programs are the kinds of eBPF programs that packets pass: xdp, ingress, egress.
	Programs []string `json:"programs,omitempty"`
	Addrs    []string `json:"addrs,omitempty"`
}

// Qdisc is a queueing discipline of a device.
type Qdisc struct {
	Device     string  `json:"device"`
	Kind       string  `json:"kind"`
	Rate       float64 `json:"rate,omitempty"`  // bit/s, where it has one
	Delay      float64 `json:"delay,omitempty"` // s, of netem
	Loss       float64 `json:"loss,omitempty"`  // 0 to 1, of netem
	Packets    float64 `json:"packets,omitempty"`
	Drops      float64 `json:"drops,omitempty"`
	Overlimits float64 `json:"overlimits,omitempty"`
}

// Route is an entry of the main table.
type Route struct {
	To     string `json:"to"`
	Via    string `json:"via,omitempty"`
	Device string `json:"device"`
	MTU    int    `json:"mtu,omitempty"`
}

// Resolver is what resolv.conf says.
type Resolver struct {
	Servers []string `json:"servers,omitempty"`
	Search  []string `json:"search,omitempty"`
	Ndots   int      `json:"ndots,omitempty"`
}

// Path is a rung of the ladder in one direction.
type Path struct {
	Kind string `json:"kind"` // Host, NodePod, …
	// Back says that the path goes from the second end to the first.
	Back bool   `json:"back,omitempty"`
	From string `json:"from"` // endpoints
	To   string `json:"to"`
	// Probes are what was done on the path, by kind of probe.
	Probes map[string]Probe `json:"probes"`
}

// The kinds of paths.
const (
	Host     = "node-node"
	NodePod  = "node-pod"
	PodNode  = "pod-node"
	PodPod   = "pod-pod"
	SameNode = "same-node"
	Service  = "service"
	DNS      = "dns"
	Quiet    = "quiet" // nothing is sent: what the nodes do anyway
	Yours    = "yours" // what the user's pods did while all of this was measured
)

// The probes.
const (
	RTT     = "rtt"     // one byte there and back over one connection
	Connect = "connect" // a new connection for each request
	Bulk    = "bulk"    // TCP as fast as it may
	Small   = "small"   // datagrams of 100 bytes at a rate
	Large   = "large"   // datagrams of the path's size at a rate
	Size    = "size"    // the largest packet that crosses whole
	Lookup  = "lookup"  // names
	Loaded  = "loaded"  // RTT while bulk runs
	Idle    = "idle"    // of Quiet and Yours
)

// Probe is what one kind of probe measured over all its slices.
type Probe struct {
	Seconds float64            `json:"seconds"` // under load
	Figures map[string]float64 `json:"figures"`
	// Slices are the values of each slice, by figure.
	Slices map[string][]float64 `json:"slices,omitempty"`
	// Counters are the growth of the counters over all slices, by endpoint and series as
	// OpenMetrics writes it: node_network_receive_bytes{device="eth0"}.
	Counters map[string]map[string]float64 `json:"counters,omitempty"`
}

// The figures, SI units.
const (
	P50         = "p50"         // s
	P99         = "p99"         // s
	MaxTime     = "max"         // s
	Goodput     = "goodput"     // bit/s
	Retransmits = "retransmits" // share of the segments that were sent again
	Loss        = "loss"        // share of datagrams
	Rate        = "rate"        // answers per second
	Asked       = "asked"       // of Connect: asked rate
	Late        = "late"        // share of the connections or look-ups that needed a second try
	Failed      = "failed"      // share without an answer
	Busy        = "busy"        // share of the time in which TCP had data to send
	RwndLimited = "rwnd"        // share of Busy that waited for the receiver's window
	SndLimited  = "sndbuf"      // share of Busy that waited for the send buffer
	Whole       = "whole"       // bytes of the largest packet that crosses
	MTU         = "mtu"         // bytes of the sender's interface
	Queries     = "queries"     // per look-up
)

// Trial is a setting that was changed in half of the slices and changed back.
type Trial struct {
	Key     string        `json:"key"`  // of the Setting
	Node    string        `json:"node"` // endpoint
	What    string        `json:"what"` // "tx-checksum-ip-generic of flannel.1 on"
	Figures []TrialFigure `json:"figures"`
}

// TrialFigure has a figure in pairs of slices.
type TrialFigure struct {
	Metric  string    `json:"metric"`
	Lower   bool      `json:"lower,omitempty"` // is better
	Without []float64 `json:"without"`
	With    []float64 `json:"with"`
}

// Setting is a change that would prove a claim.
type Setting struct {
	Key      string   `json:"key"`
	Cause    string   `json:"cause"`
	Endpoint string   `json:"endpoint"` // where
	What     string   `json:"what"`
	Back     bool     `json:"back"` // the direction whose figure should move
	Changes  []Change `json:"changes"`
}

// Change is one value; Kind and Name are those of a place of package tune.
type Change struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	To   string `json:"to"`
}

// key names the setting.
func (s *Setting) key() string { return fmt.Sprint(s.Endpoint, " ", s.Changes) }

// path returns the path of that kind and direction, nil where it was not measured.
func (c *Case) path(kind string, back bool) *Path {
	for i := range c.Paths {
		if p := &c.Paths[i]; p.Kind == kind && p.Back == back {
			return p
		}
	}
	return nil
}

// figure returns a figure of a path; ok is false where it was not measured.
func (c *Case) figure(kind string, back bool, probe, figure string) (value float64, ok bool) {
	p := c.path(kind, back)
	if p == nil {
		return 0, false
	}
	value, ok = p.Probes[probe].Figures[figure]
	return value, ok
}

// snapshot returns the endpoint's snapshot, an empty one where there is none.
func (c *Case) snapshot(endpoint string) *Snapshot {
	for i := range c.Snapshots {
		if c.Snapshots[i].Endpoint == endpoint {
			return &c.Snapshots[i]
		}
	}
	return &Snapshot{Endpoint: endpoint}
}

// nodes returns the snapshots of all nodes, the two ends first.
func (c *Case) nodes() (list []*Snapshot) {
	for i := range c.Snapshots {
		if !c.Snapshots[i].Pod {
			list = append(list, &c.Snapshots[i])
		}
	}
	return list
}

// ends returns the sender's and the receiver's node of a direction.
func (c *Case) ends(back bool) (from, to string) {
	if len(c.Ends) < 2 {
		return "", ""
	}
	if back {
		return c.Ends[1], c.Ends[0]
	}
	return c.Ends[0], c.Ends[1]
}

// pods returns the sending and the receiving pod of a direction.
func (c *Case) pods(back bool) (from, to string) {
	if len(c.Pods) < 2 {
		return "", ""
	}
	if back {
		return c.Pods[1], c.Pods[0]
	}
	return c.Pods[0], c.Pods[1]
}

// direction returns the direction in words.
func (c *Case) direction(back bool) string {
	from, to := c.ends(back)
	return from + " → " + to
}

// device returns the device of that name, nil where there is none.
func (s *Snapshot) device(name string) *Device {
	for i := range s.Devices {
		if s.Devices[i].Name == name {
			return &s.Devices[i]
		}
	}
	return nil
}

// results returns the figures of all paths.
func (c *Case) results() []PathResult {
	list := []PathResult{}
	for _, p := range c.Paths {
		r := PathResult{Path: p.Kind, Direction: c.direction(p.Back), From: p.From, To: p.To, Figures: map[string]float64{}}
		for _, probe := range slices.Sorted(maps.Keys(p.Probes)) {
			for name, v := range p.Probes[probe].Figures {
				r.Figures[probe+"_"+name] = v
			}
		}
		list = append(list, r)
	}
	return list
}

// Series writes a counter's name with its labels as the keys of Probe.Counters.
func Series(family string, labels map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+`="`+labels[name]+`"`)
	}
	return series(family, list...)
}

// series writes a counter's name as the keys of Probe.Counters.
func series(family string, labels ...string) string {
	if len(labels) == 0 {
		return family
	}
	return family + "{" + strings.Join(labels, ",") + "}"
}

// growth returns by how much the counters of that family grew at the endpoint, over all
// series; ok is false where nobody recorded them.
func (p *Probe) growth(endpoint, family string) (sum float64, ok bool) {
	for key, v := range p.Counters[endpoint] {
		if name, _, _ := strings.Cut(key, "{"); name == family {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// growthOver returns the growth over all probes of all paths.
func (c *Case) growthOver(endpoint, family string) (sum float64, ok bool) {
	for _, p := range c.Paths {
		for _, probe := range p.Probes {
			v, has := probe.growth(endpoint, family)
			sum, ok = sum+v, ok || has
		}
	}
	return sum, ok
}

// Hop is what passed a device in one direction.
type Hop struct {
	Endpoint, Device string
	Sent             bool
	Bytes, Packets   float64
}

// size returns bytes per packet.
func (h Hop) size() float64 { return h.Bytes / max(1, h.Packets) }

// minBulk is the least that must arrive to tell the devices of a path by it, bytes.
const minBulk = 1 << 20

// hops returns the devices that carried the path's bulk from its sender to its receiver,
// at the endpoints given: those with at least half of the bytes of the busiest.
func (c *Case) hops(p *Path, endpoints ...string) (list []Hop) {
	if p == nil {
		return nil
	}
	probe := p.Probes[Bulk]
	arrived := probe.Figures[Goodput]
	if list := probe.Slices[Goodput]; len(list) > 0 { // the figure is the best slice's, the counters are of all
		arrived = stat.Mean(list)
	}
	maximum := arrived / 8 * probe.Seconds
	if maximum < minBulk { // next to nothing arrived: what was sent tells the way
		maximum = 0
		for key, v := range probe.Counters[p.From] {
			if strings.HasPrefix(key, "node_network_transmit_bytes{") && !strings.Contains(key, `"lo"`) {
				maximum = max(maximum, v)
			}
		}
	}
	for _, endpoint := range endpoints {
		counters := probe.Counters[endpoint]
		for _, d := range c.snapshot(endpoint).Devices {
			if d.Name == "lo" {
				continue
			}
			label := `device="` + d.Name + `"`
			for _, way := range []string{"receive", "transmit"} {
				h := Hop{endpoint, d.Name, way == "transmit",
					counters[series("node_network_"+way+"_bytes", label)], counters[series("node_network_"+way+"_packets", label)]}
				if h.Packets > 0 && h.Bytes >= maximum/2 && maximum > 0 {
					list = append(list, h)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Hop) int {
		return cmp.Compare(slices.Index(endpoints, a.Endpoint), slices.Index(endpoints, b.Endpoint))
	})
	return list
}
