package diagnose_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/diagnose"
)

var update = flag.Bool("update", false, "write the constructed cases of the corpus anew")

// corpus is the folder of the cases, for other tools too.
const corpus = "../../corpus"

// entry is a file of the corpus.
type entry struct {
	Schema string `json:"schema"`
	// Cause is what is planted; of a twin, the cause that must not be named.
	Cause string `json:"cause"`
	Twin  bool   `json:"twin,omitempty"`
	// Made says where the case comes from: constructed by hand, or recorded where.
	Made string `json:"made"`
	How  string `json:"how"` // the plant in words or commands
	// Expected is the first claim; an ID of "usual" is a verdict without any.
	Expected expected      `json:"expected"`
	Case     diagnose.Case `json:"case"`
}

type expected struct {
	ID        string `json:"id"`
	State     string `json:"state,omitempty"`
	Node      string `json:"node,omitempty"`
	Device    string `json:"device,omitempty"`
	Direction string `json:"direction,omitempty"`
	Pod       string `json:"pod,omitempty"`
}

const corpusSchema = "cnibench/diagnose-corpus/1"

// files returns the corpus by path.
func files(t *testing.T) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var e entry
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		rel, _ := filepath.Rel(corpus, path)
		all[rel] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCorpus(t *testing.T) {
	if *update {
		write(t)
	}
	for name, e := range files(t) {
		t.Run(name, func(t *testing.T) {
			if e.Schema != corpusSchema {
				t.Errorf("schema %q", e.Schema)
			}
			v := diagnose.Diagnose(&e.Case)
			got := expected{ID: "usual"}
			switch {
			case len(v.Causes) > 0:
				x := v.Causes[0]
				got = expected{x.ID, string(x.State), x.Node, x.Device, x.Direction, x.Pod}
				if x.Text == "" || x.Next == "" || len(x.Evidence) == 0 || x.Source == "" {
					t.Errorf("a claim without text, evidence, source or next step: %+v", x)
				}
			case v.Verdict != diagnose.Usual:
				got.ID = v.Verdict
			}
			if diff := cmp.Diff(e.Expected, got); diff != "" {
				text, _ := json.MarshalIndent(v.Causes, "", " ")
				t.Errorf("%s\n%s\n%s", diff, v.Summary, text)
			}
			if e.Twin && slices.ContainsFunc(v.Causes, func(x diagnose.Claim) bool { return x.ID == e.Cause }) {
				t.Errorf("the twin has no %s", e.Cause)
			}
		})
	}
}

// TestEveryCauseHasPlantAndTwin is the rule of the corpus.
func TestEveryCauseHasPlantAndTwin(t *testing.T) {
	plants, twins := map[string]bool{}, map[string]bool{}
	for _, e := range files(t) {
		plants[e.Cause] = plants[e.Cause] || !e.Twin
		twins[e.Cause] = twins[e.Cause] || e.Twin
	}
	for _, c := range diagnose.All() {
		if c.ID == "usual" {
			continue
		}
		if !plants[c.ID] || !twins[c.ID] {
			t.Errorf("%s: plant %v, twin %v", c.ID, plants[c.ID], twins[c.ID])
		}
		if c.Summary == "" || c.Predicts == "" || c.Remedy == "" || c.Source == "" {
			t.Errorf("%s: says too little: %+v", c.ID, c)
		}
	}
}

// write writes the constructed cases.
func write(t *testing.T) {
	t.Helper()
	for _, k := range constructed() {
		c := sound()
		k.change(&c)
		name := "plant"
		if k.twin {
			name = "twin"
		}
		if k.name != "" {
			name += "-" + k.name
		}
		e := entry{corpusSchema, k.cause, k.twin, "constructed", k.how, k.want, c}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(corpus, k.cause)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kind is a constructed case: what is changed of a sound VXLAN network.
type kind struct {
	cause, name string
	twin        bool
	how         string
	want        expected
	change      func(c *diagnose.Case)
}

// sound is a healthy VXLAN between two nodes, as flannel makes it.
func sound() diagnose.Case {
	on := func() map[string]bool {
		return map[string]bool{"tx-checksum-ip-generic": true, "tx-scatter-gather": true, "tx-tcp-segmentation": true, "tx-generic-segmentation": true, "rx-gro": true}
	}
	node := func(name, addr string) diagnose.Snapshot {
		return diagnose.Snapshot{
			Endpoint: name, Node: name, Kernel: "6.12.0", CPUs: 2, ConntrackCount: 60, ConntrackMax: 262144,
			Devices: []diagnose.Device{
				{Name: "eth0", Kind: "veth", MTU: 1500, Features: on(), Addrs: []string{addr}, RXQueues: 1},
				{Name: "flannel.1", Kind: "vxlan", MTU: 1450, Features: on(), RXQueues: 1},
				{Name: "veth1", Kind: "veth", MTU: 1450, Features: on(), Master: "cni0", RXQueues: 1},
				{Name: "cni0", Kind: "bridge", MTU: 1450, Features: on(), RXQueues: 1},
			},
			Qdiscs:  []diagnose.Qdisc{{Device: "eth0", Kind: "pfifo_fast", Packets: 1000}},
			After:   []diagnose.Qdisc{{Device: "eth0", Kind: "pfifo_fast", Packets: 41000}},
			Sysctls: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.conf.all.rp_filter": "0", "net.core.netdev_max_backlog": "1000"},
			Rules:   map[string]int{"ip filter FORWARD": 8},
		}
	}
	pod := func(name, node string) diagnose.Snapshot {
		return diagnose.Snapshot{
			Endpoint: name, Node: node, Pod: true, Kernel: "6.12.0", CPUs: 2,
			Devices:    []diagnose.Device{{Name: "eth0", Kind: "veth", MTU: 1450, Features: on(), RXQueues: 1}},
			Sysctls:    map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"},
			Resolver:   &diagnose.Resolver{Servers: []string{"10.96.0.10"}, Search: []string{"default.svc.cluster.local"}, Ndots: 5},
			Containers: []string{"app"},
		}
	}
	c := diagnose.Case{
		Schema: diagnose.CaseSchema, Arena: "kube", Contender: "this-cluster", Kernel: "6.12.0",
		Ends: []string{"node-1", "node-2"}, Pods: []string{"pod-1", "pod-2"},
		Snapshots: []diagnose.Snapshot{node("node-1", "10.0.0.1/24"), node("node-2", "10.0.0.2/24"), pod("pod-1", "node-1"), pod("pod-2", "node-2")},
	}
	quiet := diagnose.Probe{Seconds: 0.5, Figures: map[string]float64{}, Counters: map[string]map[string]float64{}}
	for _, n := range c.Ends {
		quiet.Counters[n] = cpuTime(0.5, 2, 0.05, 0)
	}
	c.Paths = append(c.Paths, diagnose.Path{Kind: diagnose.Quiet, Probes: map[string]diagnose.Probe{diagnose.Idle: quiet}})
	for _, back := range []bool{false, true} {
		a, b := 0, 1
		if back {
			a, b = 1, 0
		}
		na, nb, pa, pb := c.Ends[a], c.Ends[b], c.Pods[a], c.Pods[b]
		c.Paths = append(c.Paths,
			rung(diagnose.Host, back, na, nb, 10e9, 60e-6, map[string][]string{na: {"eth0"}, nb: {"eth0"}}),
			rung(diagnose.NodePod, back, na, pb, 6e9, 90e-6, map[string][]string{na: {"flannel.1", "eth0"}, nb: {"eth0", "flannel.1", "cni0", "veth1"}, pb: {"eth0"}}),
			rung(diagnose.PodNode, back, pa, nb, 7e9, 85e-6, map[string][]string{pa: {"eth0"}, na: {"veth1", "cni0", "eth0"}, nb: {"eth0"}}),
			rung(diagnose.PodPod, back, pa, pb, 5e9, 100e-6, map[string][]string{pa: {"eth0"}, na: {"veth1", "cni0", "flannel.1", "eth0"}, nb: {"eth0", "flannel.1", "cni0", "veth1"}, pb: {"eth0"}}),
		)
	}
	c.Paths = append(c.Paths, rung(diagnose.Service, false, "pod-1", "pod-2", 5e9, 101e-6, nil), diagnose.Path{
		Kind: diagnose.DNS, From: "pod-1", To: "10.96.0.10", Probes: map[string]diagnose.Probe{diagnose.Lookup: {Seconds: 1,
			Figures: map[string]float64{diagnose.P50: 1e-3, diagnose.MaxTime: 4e-3, diagnose.Late: 0, diagnose.Failed: 0, diagnose.Queries: 2}}},
	})
	return c
}

// cpuTime is what the CPUs of a node did.
func cpuTime(seconds float64, cpus int, busy, softirq float64) map[string]float64 {
	m := map[string]float64{"node_pressure_cpu_waiting_seconds": busy * seconds / 4}
	for cpu := range cpus {
		label := `{cpu="` + string(rune('0'+cpu)) + `",mode="`
		m["node_cpu_seconds"+label+`user"}`] = seconds * max(0, busy-softirq)
		m["node_cpu_seconds"+label+`softirq"}`] = seconds * softirq
		m["node_cpu_seconds"+label+`idle"}`] = seconds * (1 - busy)
		m["node_cpu_seconds"+label+`steal"}`] = 0
	}
	return m
}

// rung is a path that is fine. devices are those that carry it, by endpoint; the first
// endpoints send.
func rung(kind string, back bool, from, to string, goodput, rtt float64, devices map[string][]string) diagnose.Path {
	const seconds = 0.6
	bytes := goodput / 8 * seconds
	counters := map[string]map[string]float64{}
	for endpoint, names := range devices {
		counters[endpoint] = map[string]float64{}
		if kind == diagnose.PodPod {
			counters[endpoint] = cpuTime(seconds, 2, 0.6, 0.2)
			for _, counter := range zeroCounters {
				counters[endpoint][counter] = 0
			}
		}
		for i, name := range names {
			for _, way := range []string{"receive", "transmit"} {
				// The sender's pod and uplink send, the receiver's receive; what is
				// between does both.
				sends := endpoint == from && len(names) == 1 || strings.HasSuffix(from, endpoint[len(endpoint)-1:]) && endpoint != from && i > 0 || endpoint == from
				if strings.HasSuffix(from, endpoint[len(endpoint)-1:]) && i == 0 && endpoint != from {
					sends = false
				}
				if strings.HasSuffix(to, endpoint[len(endpoint)-1:]) {
					sends = i == len(names)-1 && endpoint != to
				}
				if sends != (way == "transmit") {
					continue
				}
				label := `{device="` + name + `"}`
				counters[endpoint]["node_network_"+way+"_bytes"+label] = bytes * 1.02
				counters[endpoint]["node_network_"+way+"_packets"+label] = bytes / 30000
			}
		}
	}
	few := map[string]map[string]float64{}
	for endpoint := range devices {
		few[endpoint] = map[string]float64{}
		if kind == diagnose.PodPod {
			few[endpoint] = cpuTime(seconds, 2, 0.3, 0.05)
		}
		for _, counter := range zeroCounters {
			if endpoint == from || kind == diagnose.PodPod {
				few[endpoint][counter] = 0
			}
		}
	}
	return diagnose.Path{Kind: kind, Back: back, From: from, To: to, Probes: map[string]diagnose.Probe{
		diagnose.Bulk: {Seconds: seconds, Counters: counters, Figures: map[string]float64{
			diagnose.Goodput: goodput, diagnose.Retransmits: 0, diagnose.Busy: 0.95, diagnose.RwndLimited: 0.05, diagnose.SndLimited: 0}},
		diagnose.RTT:     {Seconds: seconds, Counters: few, Figures: map[string]float64{diagnose.P50: rtt, diagnose.P99: 3 * rtt}},
		diagnose.Connect: {Seconds: seconds, Counters: few, Figures: map[string]float64{diagnose.P50: 2.5 * rtt, diagnose.Rate: 200, diagnose.Asked: 200, diagnose.Late: 0, diagnose.Failed: 0}},
		diagnose.Small:   {Seconds: seconds, Figures: map[string]float64{diagnose.Loss: 0}},
		diagnose.Large:   {Seconds: seconds, Figures: map[string]float64{diagnose.Loss: 0}},
		diagnose.Size:    {Figures: sizes(kind)},
	}}
}

func sizes(kind string) map[string]float64 {
	if kind == diagnose.Host {
		return map[string]float64{diagnose.Whole: 1500, diagnose.MTU: 1500}
	}
	return map[string]float64{diagnose.Whole: 1450, diagnose.MTU: 1450}
}

var zeroCounters = []string{
	"node_softnet_dropped", "node_netstat_Tcp_InCsumErrors", "node_netstat_Udp_InCsumErrors", "node_netstat_TcpExt_IPReversePathFilter",
	"node_netstat_TcpExt_TCPSynRetrans", "node_nf_conntrack_stat_insert_failed", "node_nf_conntrack_stat_drop", "node_nf_conntrack_stat_early_drop",
	"node_netstat_Ip_FragCreates", "node_netstat_Ip_ReasmReqds", "node_netstat_Ip_ReasmOKs", "node_netstat_Ip_ReasmFails",
}

func jsonText(c *diagnose.Case) (string, error) {
	text, err := json.Marshal(c)
	return string(text), err
}
