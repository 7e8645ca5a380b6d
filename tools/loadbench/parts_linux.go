package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/unit"
)

// What the parts have in common.
const (
	connections = 64
	fixedRate   = 10000.0 // 1/s
	warmup      = time.Second
	p99Bound    = 10 * time.Millisecond
	stall       = 200 * time.Millisecond
	stallEvery  = 2 * time.Second
)

// closedLoops are the numbers of connections of the closed loops.
var closedLoops = []int{8, 64}

// capture loads the server while tcpdump records the client's interface. It
// gives the times from request out to response in by the packets' timestamps,
// and what cnibench measured meanwhile.
func (b *bed) capture(ctx context.Context, d time.Duration) ([]time.Duration, *measured, error) {
	server, err := b.nginx(ctx)
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(b.dir, "client.pcap")
	// On the server's CPU, so that the client keeps its own, and in large
	// buffers. Headers are enough: Ethernet, IPv4 and TCP with timestamps.
	tcpdump, err := b.start(ctx, place{ns: b.client.ns, cpu: b.server.cpu}, "tcpdump", "-i", device, "-w", file,
		"--time-stamp-precision=nano", "-s", "96", "-B", "65536", "-Z", "root", "tcp")
	if err != nil {
		return nil, nil, err
	}
	time.Sleep(time.Second) // until it listens
	// Without a warm-up: then both have seen the same exchanges, but for the
	// one that finds out whether the server answers.
	m, err := b.load(ctx, 0, d, "--rate", strconv.Itoa(fixedRate), "--connections", strconv.Itoa(connections))
	time.Sleep(time.Second) // until the last packets are through its buffers
	if err := errors.Join(err, tcpdump.stop(), server.stop()); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	list, err := exchanges(f, b.target())
	if err != nil {
		return nil, nil, err
	}
	if lost := int(m.Requests) - len(list); lost > int(m.Requests)/1000 {
		return nil, nil, fmt.Errorf("the capture has %d of %d exchanges; tcpdump: %s", len(list), m.Requests, strings.TrimSpace(tcpdump.stderr.String()))
	}
	seen := make([]time.Duration, len(list))
	for i, x := range list {
		seen[i] = x.In.Sub(x.Out)
	}
	return seen, m, nil
}

// truth compares the clocks with packet timestamps of the same run.
func (b *bed) truth(ctx context.Context, out *page, d time.Duration) error {
	seen, m, err := b.capture(ctx, d)
	if err != nil {
		return err
	}
	out.section("Against packet timestamps", fmt.Sprintf("%s, %d connections, %v; %d exchanges captured, %d measured.",
		unit.PerSecond(fixedRate), connections, d, len(seen), m.Requests))
	rows := [][]string{{"", "p50", "p99"}}
	row := func(name string, p50, p99 float64) {
		rows = append(rows, []string{name, micro(p50), micro(p99)})
	}
	packet50, packet99 := percentile(seen, 50).Seconds(), percentile(seen, 99).Seconds()
	row("request out to response in, by packet timestamps", packet50, packet99)
	for _, clock := range []string{"network_time", "service_time", "latency", "send_lag"} {
		row(strings.ReplaceAll(clock, "_", " "), m.Times[clock+"_p50"], m.Times[clock+"_p99"])
	}
	out.table(rows)
	for _, q := range []struct {
		name   string
		packet float64
	}{{"p50", packet50}, {"p99", packet99}} {
		diff, allowed := m.Times["network_time_"+q.name]-q.packet, max(0.1*q.packet, 10e-6)
		out.reach(abs(diff) <= allowed, "network time %s is %s from that of the packets; at most %s", q.name, formatSigned(diff), micro(allowed))
	}
	out.limits(m.Limits)
	above := m.Times["latency_p50"] - m.Times["network_time_p50"]
	out.reach(above <= 40e-6, "latency p50 is %s above network time p50; at most 40 µs", formatSigned(above))
	return nil
}

// highest compares the highest rates, and gives the best of ours.
func (b *bed) highest(ctx context.Context, out *page, d time.Duration, rounds int) (float64, error) {
	server, err := b.nginx(ctx)
	if err != nil {
		return 0, err
	}
	peers := listInstalled()
	if len(peers) == 0 || peers[0].name != "wrk" {
		return 0, errors.New("wrk is missing; run scripts/setup bench-load")
	}
	out.section("Highest rate", fmt.Sprintf("Closed loops of %v, %d rounds, the clients in turn; medians (least to most), ratios to wrk in the same round.", d, rounds))
	rows := [][]string{{"connections", "client", "requests/s", "ratio to wrk", "CPU per request", "ratio to wrk"}}
	best := 0.0
	for _, n := range closedLoops {
		names := []string{"cnibench"}
		for _, p := range peers {
			names = append(names, p.name)
		}
		speeds := map[string][]speed{}
		for round := range rounds {
			for i := range names {
				i = (i + round) % len(names) // nobody always goes first
				var s speed
				if i == 0 {
					s, err = b.ownSpeed(ctx, n, d)
				} else {
					s, err = b.peerSpeed(ctx, peers[i-1], n, d)
				}
				if err != nil {
					return 0, err
				}
				speeds[names[i]] = append(speeds[names[i]], s)
			}
		}
		for _, name := range names {
			c := compare(speeds[name], speeds["wrk"])
			rows = append(rows, []string{strconv.Itoa(n), name, spread(c.rates, count), ratio(c.rateRatio), spread(c.cpus, micro), ratio(c.cpuRatio)})
		}
		own := compare(speeds["cnibench"], speeds["wrk"])
		best = max(best, median(own.rates))
		out.reach(own.rateRatio >= 1, "at %d connections %s of wrk's rate; at least 1", n, ratio(own.rateRatio))
		out.reach(own.cpuRatio <= 1, "at %d connections %s of wrk's CPU time per request; at most 1", n, ratio(own.cpuRatio))
	}
	out.table(rows)
	found := "nothing"
	switch sustained, err := b.findMax(ctx, connections, d); {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		found += ": " + err.Error() // a busy machine has no such rate
	default:
		found = unit.PerSecond(sustained).String()
	}
	out.text(fmt.Sprintf("`--find-max` at %d connections with a p99 of at most %v: %s.", connections, p99Bound, found))
	return best, server.stop()
}

// lag measures the send lag at half of the highest rate.
func (b *bed) lag(ctx context.Context, out *page, best float64, d time.Duration) error {
	server, err := b.nginx(ctx)
	if err != nil {
		return err
	}
	rate := float64(int(best / 2))
	m, err := b.load(ctx, warmup, d, "--rate", strconv.Itoa(int(rate)), "--connections", strconv.Itoa(connections))
	if err := errors.Join(err, server.stop()); err != nil {
		return err
	}
	out.section("Send lag at half of the highest rate", fmt.Sprintf("%s, %d connections, %v.", unit.PerSecond(rate), connections, d))
	out.table([][]string{
		{"", "p50", "p99", "p99.9"},
		{"send lag", micro(m.Times["send_lag_p50"]), micro(m.Times["send_lag_p99"]), micro(m.Times["send_lag_p99_9"])},
	})
	out.limits(m.Limits)
	out.reach(m.Times["send_lag_p99"] < 100e-6, "send lag p99 is %s; less than 100 µs", micro(m.Times["send_lag_p99"]))
	return nil
}

// stalls compares p99.9 with what the server's record of its stalls gives.
func (b *bed) stalls(ctx context.Context, out *page, d time.Duration) error {
	server, err := b.startStalling(ctx, stall, stallEvery)
	if err != nil {
		return err
	}
	m, err := b.load(ctx, warmup, d, "--rate", strconv.Itoa(fixedRate), "--connections", strconv.Itoa(connections))
	if err := errors.Join(err, server.stop()); err != nil {
		return err
	}
	held, err := stallsOf(server)
	if err != nil {
		return err
	}
	computed := percentile(waits(m.begin, fixedRate, d, held), 99.9).Seconds()
	got := m.Times["latency_p99_9"]
	out.section("A server that stalls", fmt.Sprintf("`cnibench serve http` holds its responses for %v every %v; %s, %d connections, %v, %d stalls on record.",
		stall, stallEvery, unit.PerSecond(fixedRate), connections, d, len(held)))
	out.table([][]string{
		{"", "p99.9"},
		{"computed from plan and stalls", milli(computed)},
		{"latency", milli(got)},
		{"service time", milli(m.Times["service_time_p99_9"])},
	})
	out.limits(m.Limits)
	out.reach(computed > 0 && abs(got/computed-1) <= 0.02, "p99.9 is %+.2f %% from the computed one; at most 2 %%", 100*(got/computed-1))
	return nil
}

// comparison holds one client against wrk.
type comparison struct {
	rates, cpus         []float64
	rateRatio, cpuRatio float64 // medians of the rounds' ratios
}

func compare(own, wrk []speed) comparison {
	var c comparison
	var rateRatios, cpuRatios []float64
	for i, s := range own {
		c.rates, c.cpus = append(c.rates, s.rate), append(c.cpus, s.cpuPerRequest)
		rateRatios = append(rateRatios, s.rate/wrk[i].rate)
		cpuRatios = append(cpuRatios, s.cpuPerRequest/wrk[i].cpuPerRequest)
	}
	c.rateRatio, c.cpuRatio = median(rateRatios), median(cpuRatios)
	return c
}

func spread(values []float64, show func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", show(median(values)), show(slices.Min(values)), show(slices.Max(values)))
}
