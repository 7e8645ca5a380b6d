package measure

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
)

// What is sent. The rates are small beside any link.
const (
	tripRate    = 500 // per second
	connectRate = 200
	packetRate  = 2000 // datagrams per second
	smallPacket = 100  // bytes of payload
	udpHeaders  = 28   // IPv4 and UDP

	segments = "segments" // figure of a slice of bulk: how many were sent
)

// job is one probe of one path. Its slices come in turn with those of the others.
type job struct {
	kind, probe string
	back        bool
	from, to    *end
	run         func(ctx context.Context) (figures, error)
	slices      []figures
	borders     [][2][4]time.Time
}

// figures of one slice, by the names of package diagnose.
type figures map[string]float64

// plan lists the jobs.
func (s *session) plan(ctx context.Context) error {
	s.add(diagnose.Quiet, false, nil, nil, diagnose.Idle, func(ctx context.Context) (figures, error) {
		select {
		case <-time.After(quietTime / time.Duration(s.Cycles)):
		case <-ctx.Done():
		}
		return figures{}, ctx.Err()
	})
	for _, back := range []bool{false, true} {
		a, b := 0, 1
		if back {
			a, b = 1, 0
		}
		for _, rung := range []struct {
			kind     string
			from, to *end
		}{
			{diagnose.Host, s.nodes[a], s.nodes[b]}, {diagnose.PodPod, s.pods[a], s.pods[b]},
			{diagnose.NodePod, s.nodes[a], s.pods[b]}, {diagnose.PodNode, s.pods[a], s.nodes[b]},
		} {
			if s.hostless == nil || rung.kind == diagnose.PodPod {
				s.rung(rung.kind, back, rung.from, rung.to)
			}
		}
	}
	if s.beside != nil {
		s.trips(diagnose.SameNode, false, s.pods[0], s.beside, "tcp", s.beside.at(s.beside.ports.TCP))
		s.bulk(diagnose.SameNode, false, s.pods[0], s.beside, s.beside.at(s.beside.ports.Sink))
	}
	server := s.pods[1]
	pair, _, err := s.network.Service(ctx, []arena.Port{{Protocol: arena.TCP, Number: server.ports.TCP}, {Protocol: arena.TCP, Number: server.ports.Sink}}, 0)
	if err != nil {
		u := arena.AsUnsupported(err)
		if u == nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			u = &arena.Unsupported{Reason: err.Error()}
		}
		s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: "services-many", Why: u.Reason, Remedy: u.Remedy})
		return nil
	}
	s.trips(diagnose.Service, false, s.pods[0], server, "tcp", pair.At(server.ports.TCP))
	s.trips(diagnose.Service, false, s.pods[0], server, "connect", pair.At(server.ports.TCP))
	s.bulk(diagnose.Service, false, s.pods[0], server, pair.At(server.ports.Sink))
	return nil
}

// rung adds all probes of a path between nodes.
func (s *session) rung(kind string, back bool, from, to *end) {
	s.trips(kind, back, from, to, "tcp", to.at(to.ports.TCP))
	s.trips(kind, back, from, to, "connect", to.at(to.ports.TCP))
	s.bulk(kind, back, from, to, to.at(to.ports.Sink))
	s.datagrams(kind, back, from, to, diagnose.Small, smallPacket)
	if kind == diagnose.Host || kind == diagnose.PodPod {
		s.datagrams(kind, back, from, to, diagnose.Large, min(from.mtu, to.mtu, s.crosses(kind, back, from))-udpHeaders)
	}
	if kind == diagnose.PodPod && s.UnderLoad && !back {
		s.add(kind, back, from, to, diagnose.Loaded, func(ctx context.Context) (figures, error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = from.agent.SendBurst(ctx, agent.Burst{Target: to.at(to.ports.Sink), Protocol: "tcp", Rate: s.MaxRate, Duration: s.Slice + 2*leadIn}) // its own job tells how it fares
			}()
			time.Sleep(leadIn)
			f, err := s.trip(ctx, from, "tcp", to.at(to.ports.TCP))
			<-done
			return f, err
		})
	}
}

// crosses returns the largest packet that crosses, the MTU where nobody knows.
func (s *session) crosses(kind string, back bool, from *end) int {
	if whole := s.path(kind, back, nil, nil).Probes[diagnose.Size].Figures[diagnose.Whole]; whole > 0 {
		return int(whole)
	}
	return from.mtu
}

func (s *session) add(kind string, back bool, from, to *end, probe string, run func(ctx context.Context) (figures, error)) {
	p := s.path(kind, back, from, to)
	if from != nil {
		p.From, p.To = from.name, to.name
	}
	s.jobs = append(s.jobs, &job{kind: kind, probe: probe, back: back, from: from, to: to, run: run})
}

func (s *session) trips(kind string, back bool, from, to *end, exchange string, target netip.AddrPort) {
	probe := map[string]string{"tcp": diagnose.RTT, "connect": diagnose.Connect}[exchange]
	s.add(kind, back, from, to, probe, func(ctx context.Context) (figures, error) { return s.trip(ctx, from, exchange, target) })
}

func (s *session) trip(ctx context.Context, from *end, exchange string, target netip.AddrPort) (figures, error) {
	rate, sockets := float64(tripRate), 1
	if exchange == "connect" {
		rate, sockets = connectRate, 16
	}
	got, err := from.agent.RoundTrips(ctx, agent.Trips{Targets: []netip.AddrPort{target}, Exchange: exchange, Sockets: sockets, Rate: rate, Duration: s.Slice, AtOnce: 1})
	if err != nil {
		return nil, err
	}
	t := got[0]
	if t.Error != "" {
		return figures{diagnose.Failed: 1, diagnose.Asked: rate}, nil
	}
	f := figures{diagnose.Failed: t.Loss, diagnose.Rate: float64(t.Answered) / s.Slice.Seconds()}
	if exchange == "connect" {
		f[diagnose.Asked], f[diagnose.P50], f[diagnose.MaxTime] = rate, t.Connect, t.Longest
		f[diagnose.Late] = t.Loss
	} else {
		f[diagnose.P50], f[diagnose.MaxTime] = t.P50, t.Max
	}
	if f[diagnose.P50] == 0 {
		delete(f, diagnose.P50)
	}
	return f, nil
}

func (s *session) bulk(kind string, back bool, from, to *end, target netip.AddrPort) {
	s.add(kind, back, from, to, diagnose.Bulk, func(ctx context.Context) (figures, error) { return s.burst(ctx, from, target, s.MaxRate) })
}

func (s *session) burst(ctx context.Context, from *end, target netip.AddrPort, rate unit.BitRate) (figures, error) {
	got, err := from.agent.SendBurst(ctx, agent.Burst{Target: target, Protocol: "tcp", Rate: rate, LeadIn: leadIn, Duration: s.Slice})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return figures{diagnose.Failed: 1}, nil
	}
	f := figures{diagnose.Goodput: got.Goodput, diagnose.Retransmits: float64(got.Retransmits) / float64(max(1, got.Segments)), segments: float64(got.Segments)}
	if got.Busy > 0 {
		f[diagnose.Busy] = got.Busy.Seconds() / s.Slice.Seconds()
		f[diagnose.RwndLimited] = got.RwndLimited.Seconds() / got.Busy.Seconds()
		f[diagnose.SndLimited] = got.SndLimited.Seconds() / got.Busy.Seconds()
	}
	return f, nil
}

func (s *session) datagrams(kind string, back bool, from, to *end, probe string, size int) {
	s.add(kind, back, from, to, probe, func(ctx context.Context) (figures, error) {
		rate := unit.BitRate(packetRate * size * 8)
		got, err := from.agent.SendBurst(ctx, agent.Burst{Target: to.at(to.ports.Sink), Protocol: "udp", Size: size, Rate: rate, LeadIn: leadIn / 5, Duration: s.Slice})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return figures{diagnose.Failed: 1}, nil
		}
		return figures{diagnose.Loss: got.Loss, "packets": float64(got.Packets)}, nil
	})
}

// slice carries one slice of a job out.
func (s *session) slice(ctx context.Context, j *job) error {
	begin, err := s.marks(ctx)
	if err != nil {
		return err
	}
	got, err := j.run(ctx)
	if err != nil {
		return err
	}
	end, err := s.marks(ctx)
	j.slices, j.borders = append(j.slices, got), append(j.borders, [2][4]time.Time{begin, end})
	return err
}

// gather turns the slices and the recordings into the case's probes.
func (s *session) gather() {
	for _, j := range s.jobs {
		probe := diagnose.Probe{Figures: map[string]float64{}, Slices: map[string][]float64{}, Counters: map[string]map[string]float64{}}
		for _, f := range j.slices {
			for name, v := range f {
				probe.Slices[name] = append(probe.Slices[name], v)
			}
			probe.Seconds += s.Slice.Seconds()
		}
		if j.kind == diagnose.Quiet {
			probe.Seconds = quietTime.Seconds()
		}
		for name, values := range probe.Slices {
			switch name {
			case diagnose.MaxTime, diagnose.Goodput: // of goodput the best slice: what else runs only takes from it
				probe.Figures[name] = slices.Max(values)
			case diagnose.P50:
				probe.Figures[name] = slices.Min(values)
			case diagnose.Retransmits:
				probe.Figures[name] = weighted(values, probe.Slices[segments])
			case diagnose.Loss, diagnose.Failed, diagnose.Late, diagnose.Rate:
				probe.Figures[name] = stat.Mean(values)
			default:
				probe.Figures[name] = stat.Median(values)
			}
		}
		for i, e := range s.watchedEnds() {
			counters := map[string]float64{}
			for _, border := range j.borders {
				addGrowth(e.record, border[0][i], border[1][i], counters)
			}
			if len(counters) > 0 {
				probe.Counters[e.name] = counters
			}
		}
		s.path(j.kind, j.back, j.from, j.to).Probes[j.probe] = probe
	}
}

// weighted returns the mean of the slices' shares, each weighted by how many it is a share of: a
// slice in which bulk stood still sent little, and next to nothing but what it sent again.
func weighted(shares, of []float64) float64 {
	sum, all := 0.0, 0.0
	for i, share := range shares {
		sum, all = sum+share*of[i], all+of[i]
	}
	if all == 0 {
		return stat.Mean(shares)
	}
	return sum / all
}

// addGrowth adds the growth of every counter between two marks. Counters that stood still are
// left out, but for those of the families that a cause excludes itself by.
func addGrowth(r *sysmon.Recording, begin, end time.Time, sum map[string]float64) {
	at := func(t time.Time) int {
		return slices.IndexFunc(r.Times, func(x time.Time) bool { return x.Equal(t) })
	}
	from, to := at(begin), at(end)
	if from < 0 || to < 0 {
		return
	}
	for _, f := range r.Families {
		if f.Type != "counter" {
			continue
		}
		for _, one := range f.Series {
			if one.Values[from].IsAbsent() || one.Values[to].IsAbsent() {
				continue
			}
			v := float64(one.Values[to] - one.Values[from])
			if v < 0 || v == 0 && len(one.Labels) > 0 && f.Name != "node_cpu_seconds" {
				continue
			}
			sum[diagnose.Series(f.Name, one.Labels)] += v
		}
	}
}
