package watch

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cnibench/cnibench/internal/mesh"
)

// worst is how many pairs of nodes have figures of their own.
const worst = 10

// rttBounds are the upper bounds of the histograms' buckets, seconds.
var rttBounds = []float64{50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 5e-3, 20e-3, 100e-3}

// Metrics are what a watch measures, for Prometheus. Their number grows with the number of nodes
// and with the square of that of zones, never with that of pairs. A nil *Metrics takes nothing.
type Metrics struct {
	registry *prometheus.Registry

	rounds, changes                       *prometheus.CounterVec
	end, nodes, late, gone                prometheus.Gauge
	zoneRTT, nodeRTT                      *prometheus.HistogramVec
	zoneSent, zoneLost                    *prometheus.CounterVec
	nodeSent, nodeLost                    *prometheus.CounterVec
	nodeRatio, nodeGoodput, nodePacket    *prometheus.GaugeVec
	worstRTT, worstLoss, slow, slowExcess *prometheus.GaugeVec

	mu    sync.Mutex
	known map[string]bool // nodes that have series
}

const (
	send    = "send"
	receive = "receive"
)

// NewMetrics returns metrics without a value.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), known: map[string]bool{}}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "cnibench", Subsystem: "mesh", Name: name, Help: help}
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
		m.registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		o := opts(name, help)
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: o.Namespace, Subsystem: o.Subsystem, Name: o.Name, Help: o.Help, Buckets: rttBounds}, labels)
		m.registry.MustRegister(v)
		return v
	}
	zones, node, pair := []string{"from_zone", "to_zone", "path"}, []string{"node", "direction", "path"}, []string{"from", "to", "path"}
	place := []string{"kind", "from", "to", "path", "metric"}
	m.rounds = counter("rounds_total", "Rounds that ended.")
	m.end = gauge("round_end_timestamp_seconds", "When the last round ended, Unix time.").WithLabelValues()
	m.nodes = gauge("nodes", "Nodes in the last round.").WithLabelValues()
	m.late = gauge("late_nodes", "Nodes whose prober was late itself in the last round: their round trips and losses blame nobody.").WithLabelValues()
	m.gone = gauge("gone_nodes", "Nodes whose agent did not answer in the last round: they are not judged.").WithLabelValues()
	m.changes = counter("changes_total", "Places that turned slow, recovered, or left with a node.", "change")
	m.zoneRTT = histogram("zone_rtt_seconds", "Median round trips of single directions between nodes, by their zones.", zones...)
	m.nodeRTT = histogram("node_rtt_seconds", "Median round trips of single directions, by the node that asks (send) or answers (receive).", node...)
	m.zoneSent = counter("zone_probes_total", "Probes sent, by zones.", zones...)
	m.zoneLost = counter("zone_lost_probes_total", "Probes without an answer, by zones.", zones...)
	m.nodeSent = counter("node_probes_total", "Probes that the node sent (send) or that were sent to it (receive).", node...)
	m.nodeLost = counter("node_lost_probes_total", "Those without an answer.", node...)
	m.nodeRatio = gauge("node_rtt_ratio", "How many times the usual round trip the node has in the last round, by the two-way fit; 1 is usual.", node...)
	m.nodeGoodput = gauge("node_goodput_bits_per_second", "Median goodput of the node's last bursts.", node...)
	m.nodePacket = gauge("node_packet_bytes", "The largest packet that crosses whole between the node and any other.", node...)
	m.worstRTT = gauge("worst_rtt_seconds", "Median round trips of the ten slowest directions of the last round.", pair...)
	m.worstLoss = gauge("worst_loss_ratio", "Share of lost probes of the ten directions of the last round that lost most; none where nothing was lost.", pair...)
	m.slow = gauge("slow", "1 while a place is slow.", place...)
	m.slowExcess = gauge("slow_ratio", "What the place had when it turned slow, over what was usual; of losses the difference.", place...)
	m.rounds.WithLabelValues()
	return m
}

// ServeHTTP answers with all metrics, as OpenMetrics to those who accept it.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
}

// Saw counts light figures as they come. Those of late senders are left out.
func (m *Metrics) Saw(nodes []mesh.Node, figures []mesh.Figure) {
	if m == nil {
		return
	}
	for _, f := range figures {
		if f.Gone || f.Held > 0 || f.Trial > 0 || f.Late || f.Probes == 0 {
			continue
		}
		from, to := nodes[f.From], nodes[f.To]
		lost := math.Round(f.Values[mesh.Loss] * float64(f.Probes))
		m.zoneSent.WithLabelValues(from.Zone, to.Zone, f.Path).Add(float64(f.Probes))
		m.zoneLost.WithLabelValues(from.Zone, to.Zone, f.Path).Add(lost)
		if rtt, ok := f.Values[mesh.RTT]; ok {
			m.zoneRTT.WithLabelValues(from.Zone, to.Zone, f.Path).Observe(rtt)
		}
		for direction, node := range map[string]string{send: from.Name, receive: to.Name} {
			m.nodeSent.WithLabelValues(node, direction, f.Path).Add(float64(f.Probes))
			m.nodeLost.WithLabelValues(node, direction, f.Path).Add(lost)
			if rtt, ok := f.Values[mesh.RTT]; ok {
				m.nodeRTT.WithLabelValues(node, direction, f.Path).Observe(rtt)
			}
		}
	}
}

// Ended takes what a whole round gave.
func (m *Metrics) Ended(plan *mesh.Plan, figures []mesh.Figure, r *mesh.Report, open []mesh.Place, events []Event) {
	if m == nil {
		return
	}
	m.rounds.WithLabelValues().Inc()
	m.end.SetToCurrentTime()
	m.nodes.Set(float64(len(plan.Nodes)))
	m.late.Set(float64(len(r.Late)))
	m.gone.Set(float64(len(r.Gone)))
	for _, e := range events {
		m.changes.WithLabelValues(string(e.Change)).Inc()
	}
	m.forget(plan.Nodes)
	m.slow.Reset()
	m.slowExcess.Reset()
	for _, p := range open {
		m.slow.WithLabelValues(string(p.Kind), p.From, p.To, p.Path, string(p.Metric)).Set(1)
		excess := p.Ratio
		if p.Metric == mesh.Loss {
			excess = p.Value - p.Usual
		}
		m.slowExcess.WithLabelValues(string(p.Kind), p.From, p.To, p.Path, string(p.Metric)).Set(excess)
	}
	m.worstPairs(m.worstRTT, r, func(p *mesh.PairReport) *float64 { return p.RTT })
	m.worstPairs(m.worstLoss, r, func(p *mesh.PairReport) *float64 { return p.Loss })
	m.perNode(plan.Nodes, figures, r)
}

// forget drops the series of nodes that are not there any more.
func (m *Metrics) forget(nodes []mesh.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]bool{}
	for _, n := range nodes {
		now[n.Name] = true
	}
	for name := range m.known {
		if !now[name] {
			labels := prometheus.Labels{"node": name}
			for _, v := range []interface {
				DeletePartialMatch(prometheus.Labels) int
			}{m.nodeRTT, m.nodeSent, m.nodeLost, m.nodeRatio, m.nodeGoodput, m.nodePacket} {
				v.DeletePartialMatch(labels)
			}
		}
	}
	m.known = now
}

// worstPairs shows the ten directions whose value is highest, those above 0.
func (m *Metrics) worstPairs(v *prometheus.GaugeVec, r *mesh.Report, value func(*mesh.PairReport) *float64) {
	var list []*mesh.PairReport
	for i := range r.Pairs {
		if got := value(&r.Pairs[i]); got != nil && *got > 0 {
			list = append(list, &r.Pairs[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *mesh.PairReport) int { return cmp.Compare(*value(b), *value(a)) })
	v.Reset()
	for _, p := range list[:min(worst, len(list))] {
		v.WithLabelValues(p.From, p.To, p.Path).Set(*value(p))
	}
}

// perNode sets what is of one node: its share of round trips, its goodput, its packets.
func (m *Metrics) perNode(nodes []mesh.Node, figures []mesh.Figure, r *mesh.Report) {
	set := func(v *prometheus.GaugeVec, node, direction, path string, value float64) {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			v.WithLabelValues(node, direction, path).Set(value)
		}
	}
	type side struct{ node, direction, path string }
	goodput, packet := map[side][]float64{}, map[side]float64{}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		for _, s := range []side{{p.From, send, p.Path}, {p.To, receive, p.Path}} {
			if p.Goodput != nil {
				goodput[s] = append(goodput[s], *p.Goodput)
			}
			if p.MTU != nil {
				packet[s] = max(packet[s], *p.MTU)
			}
		}
	}
	for s, list := range goodput {
		slices.Sort(list)
		set(m.nodeGoodput, s.node, s.direction, s.path, list[len(list)/2])
	}
	for s, size := range packet {
		set(m.nodePacket, s.node, s.direction, s.path, size)
	}
	for _, path := range []string{mesh.Host, mesh.Pod} {
		out, in := mesh.NodeRatios(nodes, path, mesh.RTT, figures)
		for i, n := range nodes {
			set(m.nodeRatio, n.Name, send, path, out[i])
			set(m.nodeRatio, n.Name, receive, path, in[i])
		}
	}
}
