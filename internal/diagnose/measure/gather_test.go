package measure

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// counters are what two endpoints recorded at the borders of two slices, 1 to 2 s and 3 to 4 s.
const counters = `# TYPE cnibench_recording info
cnibench_recording_info{node="n1",endpoint="n1"} 1 1
cnibench_recording_info{node="n1",endpoint="n1"} 1 2
cnibench_recording_info{node="n1",endpoint="n1"} 1 3
cnibench_recording_info{node="n1",endpoint="n1"} 1 4
cnibench_recording_info{node="n2",endpoint="n2"} 1 1
cnibench_recording_info{node="n2",endpoint="n2"} 1 2
cnibench_recording_info{node="n2",endpoint="n2"} 1 3
cnibench_recording_info{node="n2",endpoint="n2"} 1 4
# TYPE node_network_transmit_bytes counter
# UNIT node_network_transmit_bytes bytes
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="eth0"} 1000 1
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="eth0"} 1500 2
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="eth0"} 9500 3
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="eth0"} 9600 4
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="cni0"} 70 1
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="cni0"} 70 2
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="cni0"} 70 3
node_network_transmit_bytes_total{node="n1",endpoint="n1",device="cni0"} 70 4
node_network_transmit_bytes_total{node="n2",endpoint="n2",device="eth0"} 5 1
node_network_transmit_bytes_total{node="n2",endpoint="n2",device="eth0"} 9 2
node_network_transmit_bytes_total{node="n2",endpoint="n2",device="eth0"} 9 3
node_network_transmit_bytes_total{node="n2",endpoint="n2",device="eth0"} 10 4
# TYPE node_netstat_Tcp_InCsumErrors counter
node_netstat_Tcp_InCsumErrors_total{node="n1",endpoint="n1"} 3 1
node_netstat_Tcp_InCsumErrors_total{node="n1",endpoint="n1"} 3 2
node_netstat_Tcp_InCsumErrors_total{node="n1",endpoint="n1"} 3 3
node_netstat_Tcp_InCsumErrors_total{node="n1",endpoint="n1"} 3 4
# TYPE node_softnet_dropped counter
node_softnet_dropped_total{node="n2",endpoint="n2",cpu="1"} 7 3
node_softnet_dropped_total{node="n2",endpoint="n2",cpu="1"} 9 4
# TYPE node_memory_used_bytes gauge
# UNIT node_memory_used_bytes bytes
node_memory_used_bytes{node="n1",endpoint="n1"} 1 1
node_memory_used_bytes{node="n1",endpoint="n1"} 900 2
# EOF
`

// recorded returns the recordings by endpoint.
func recorded(t *testing.T) map[string]*sysmon.Recording {
	t.Helper()
	list, err := sysmon.ReadOpenMetrics(strings.NewReader(counters))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*sysmon.Recording{}
	for _, r := range list {
		by[r.Labels["endpoint"]] = r
	}
	return by
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0) }

// sessionOf is a session of two nodes and their pods, of which the nodes recorded something.
func sessionOf(t *testing.T) *session {
	t.Helper()
	by := recorded(t)
	node := func(name, addr string) *end {
		return &end{Endpoint: still{node: name, addr: netip.MustParseAddr(addr)}, name: name, mtu: 1500, record: by[name]}
	}
	pod := func(name, on string) *end {
		return &end{Endpoint: still{node: on, addr: netip.MustParseAddr("10.0.0.9")}, name: name, pod: true, mtu: 1450, record: &sysmon.Recording{}}
	}
	return &session{
		Options: Options{Slice: 100 * time.Millisecond, Cycles: 2}, c: &diagnose.Case{},
		nodes: [2]*end{node("n1", "192.0.2.1"), node("n2", "192.0.2.2")}, pods: [2]*end{pod("p1", "n1"), pod("p2", "n2")},
	}
}

// still is an endpoint where nothing is started.
type still struct {
	arena.Endpoint
	node string
	addr netip.Addr
}

func (s still) Node() string     { return s.node }
func (s still) Name() string     { return s.node }
func (s still) Addr() netip.Addr { return s.addr }
func (s still) Dir() string      { return "/run/x" }

// borders are those of the two slices, the same by every endpoint's clock.
func borders() (list [][2][4]time.Time) {
	for _, slice := range [][2]int64{{1, 2}, {3, 4}} {
		var one [2][4]time.Time
		for side, second := range slice {
			for i := range one[side] {
				one[side][i] = at(second)
			}
		}
		list = append(list, one)
	}
	return list
}

// The figures of a probe are made of its slices each in its way, and its counters are what grew
// between the borders of these, not between the slices.
func TestGather(t *testing.T) {
	s := sessionOf(t)
	s.jobs = []*job{{kind: diagnose.PodPod, probe: diagnose.Bulk, from: s.pods[0], to: s.pods[1], borders: borders(), slices: []figures{
		{diagnose.Goodput: 9e9, diagnose.Retransmits: 0.02, segments: 98, diagnose.RwndLimited: 0.1},
		{diagnose.Goodput: 1e9, diagnose.Retransmits: 1, segments: 2, diagnose.RwndLimited: 0.3},
	}}, {kind: diagnose.PodPod, probe: diagnose.RTT, from: s.pods[0], to: s.pods[1], borders: borders(), slices: []figures{
		{diagnose.P50: 3e-4, diagnose.MaxTime: 1e-3, diagnose.Failed: 0}, {diagnose.P50: 1e-4, diagnose.MaxTime: 9e-3, diagnose.Failed: 0.5},
	}}, {kind: diagnose.Quiet, probe: diagnose.Idle, borders: borders(), slices: []figures{{}, {}}}}
	s.gather()
	bulk := s.c.Paths[0].Probes[diagnose.Bulk]
	if diff := cmp.Diff(map[string]float64{diagnose.Goodput: 9e9, diagnose.Retransmits: 0.0396, segments: 50, diagnose.RwndLimited: 0.2}, bulk.Figures, cmp.Comparer(nearly)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]map[string]float64{
		"n1": {`node_network_transmit_bytes{device="eth0"}`: 600, "node_netstat_Tcp_InCsumErrors": 0},
		"n2": {`node_network_transmit_bytes{device="eth0"}`: 5, `node_softnet_dropped{cpu="1"}`: 2},
	}, bulk.Counters); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{9e9, 1e9}, bulk.Slices[diagnose.Goodput]); diff != "" || !nearly(bulk.Seconds, 0.2) {
		t.Errorf("%g s; %s", bulk.Seconds, diff)
	}
	trips := s.c.Paths[0].Probes[diagnose.RTT]
	if diff := cmp.Diff(map[string]float64{diagnose.P50: 1e-4, diagnose.MaxTime: 9e-3, diagnose.Failed: 0.25}, trips.Figures, cmp.Comparer(nearly)); diff != "" {
		t.Error(diff)
	}
	if quiet := s.c.Paths[1]; quiet.Kind != diagnose.Quiet || quiet.Probes[diagnose.Idle].Seconds != quietTime.Seconds() {
		t.Errorf("%+v", quiet)
	}
}

func nearly(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// What a counter lost, by a device that came anew, is no growth; a border that nobody recorded
// gives none.
func TestAddGrowth(t *testing.T) {
	r := recorded(t)["n1"]
	for i := range r.Families {
		if f := &r.Families[i]; f.Name == "node_network_transmit_bytes" {
			f.Series[0].Values[1] = 10
		}
	}
	for name, c := range map[string]struct {
		begin, end int64
		want       map[string]float64
	}{
		"a reset":             {1, 2, map[string]float64{"node_netstat_Tcp_InCsumErrors": 0}},
		"after it":            {2, 3, map[string]float64{`node_network_transmit_bytes{device="eth0"}`: 9490, "node_netstat_Tcp_InCsumErrors": 0}},
		"an unrecorded begin": {0, 3, map[string]float64{}},
		"an unrecorded end":   {2, 9, map[string]float64{}},
	} {
		got := map[string]float64{}
		addGrowth(r, at(c.begin), at(c.end), got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A share is weighted by how many it is a share of.
func TestWeighted(t *testing.T) {
	for name, c := range map[string]struct {
		shares, of []float64
		want       float64
	}{
		"one that stood still": {[]float64{0.03, 0.03, 1}, []float64{1000, 990, 10}, 0.03485},
		"none sent anything":   {[]float64{0, 0}, []float64{0, 0}, 0},
		"all alike":            {[]float64{0.1, 0.1}, []float64{5, 50}, 0.1},
	} {
		if got := weighted(c.shares, c.of); !nearly(got, c.want) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// What is asked of a session is found in its snapshots.
func TestSession(t *testing.T) {
	s := sessionOf(t)
	s.c.Snapshots = []diagnose.Snapshot{
		{Endpoint: "n1", Devices: []diagnose.Device{{Name: "lo", Addrs: []string{"127.0.0.1/8"}}, {Name: "eth1", Addrs: []string{"fe80::1/64", "192.0.2.1/24"}}}},
		{Endpoint: "p1", Pod: true, Resolver: &diagnose.Resolver{Search: []string{"default.svc.cluster.local", "svc.cluster.local"}}},
	}
	if got := s.uplink(s.nodes[0]); got != "eth1" {
		t.Errorf("uplink %q", got)
	}
	if !s.hasClusterDNS() {
		t.Error("no cluster's DNS")
	}
	if got := s.nodeOf(s.pods[1]); got != s.nodes[1] {
		t.Errorf("the node of p2 is %s", got.name)
	}
	s.path(diagnose.PodPod, true, s.pods[1], s.pods[0]).Probes[diagnose.Size] = diagnose.Probe{Figures: map[string]float64{diagnose.Whole: 1400}}
	if got := s.crosses(diagnose.PodPod, true, s.pods[1]); got != 1400 {
		t.Errorf("%d bytes cross", got)
	}
	if got := s.crosses(diagnose.Host, false, s.nodes[0]); got != 1500 {
		t.Errorf("%d bytes cross where nobody knows: want the MTU", got)
	}
	s.Journal = "/var/lib/x"
	if node, pod := s.journal(s.nodes[0]), s.journal(s.pods[0]); node != "/var/lib/x" || pod != "/run/x/tune" {
		t.Errorf("journals %s, %s", node, pod)
	}
}

// A trial whose figure could not move proves nothing, and a share that was ever nothing is no
// figure to compare.
func TestTrialFigures(t *testing.T) {
	const rate = 200e6
	held, free := []float64{199e6, 198e6}, []float64{90e6, 198e6}
	again := []float64{0.1, 0.2}
	for name, c := range map[string]struct {
		rate            float64
		without, with   []float64
		resent, resentW []float64
		figures         int // 0: an error
	}{
		"held both ways":         {rate, held, held, again, again, 0},
		"held with it alone":     {rate, free, held, again, again, 2},
		"no limit":               {0, held, held, again, again, 2},
		"nothing was sent again": {rate, free, held, []float64{0, 0.1}, again, 1},
	} {
		got, err := trialFigures(c.rate, slicePairs{c.without, c.with}, slicePairs{c.resent, c.resentW})
		if len(got) != c.figures || (err != nil) != (c.figures == 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
