package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/unit"
)

// Bulk streams: how often each program has its turn, and over how many connections
// they go. Nothing is left out at the beginning: CPU time and bytes are of the same time.
const (
	turns      = 10
	streamPort = 5301
)

var streamCounts = []int{1, 4}

// bulk is what a bulk stream reached.
type bulk struct {
	goodput   float64 // bit/s
	cpuPerGiB float64 // s, of client and server, per GiB that was received
}

func newBulk(goodput float64, d time.Duration, client, server *running) bulk {
	received := goodput / 8 * d.Seconds() / (1 << 30)
	return bulk{goodput, (client.cpu() + server.cpu()).Seconds() / received}
}

func (b *bed) ownStream(ctx context.Context, n int, d time.Duration) (bulk, error) {
	at := netip.AddrPortFrom(b.server.addr, streamPort).String()
	server, err := b.start(ctx, b.server, b.cnibench, "serve", "stream", "--listen", at)
	if err != nil {
		return bulk{}, err
	}
	client, err := b.run(ctx, b.client, b.cnibench, "load", "tcp-stream", at, "--connections", strconv.Itoa(n),
		"--warmup", "0s", "--duration", d.String(), "--wait", "10s", "--json")
	if err := errors.Join(err, server.stop()); err != nil {
		return bulk{}, err
	}
	var r stream.Report
	if err := json.Unmarshal(client.stdout.Bytes(), &r); err != nil {
		return bulk{}, fmt.Errorf("output of cnibench load: %w", err)
	}
	return newBulk(r.Goodput, d, client, server), nil
}

func (b *bed) iperf3Stream(ctx context.Context, n int, d time.Duration) (bulk, error) {
	server, err := b.start(ctx, b.server, "iperf3", "-s", "-p", strconv.Itoa(streamPort))
	if err != nil {
		return bulk{}, err
	}
	client, err := b.iperf3Client(ctx, n, d)
	_ = server.stop() // iperf3 calls its own end by a signal a failure
	if err != nil {
		return bulk{}, err
	}
	rate, err := iperf3Rate(client.stdout.Bytes())
	if err != nil {
		return bulk{}, err
	}
	return newBulk(rate, d, client, server), nil
}

// iperf3Rate is what was received per second, bit/s, as iperf3 -J prints it. An error
// that it met is in its output, and 3.12 ends with exit code 0 all the same.
func iperf3Rate(output []byte) (float64, error) {
	var r struct {
		Error string `json:"error"`
		End   struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	switch err := json.Unmarshal(output, &r); {
	case err != nil:
		return 0, fmt.Errorf("output of iperf3: %w", err)
	case r.Error != "":
		return 0, fmt.Errorf("iperf3: %s", r.Error)
	case r.End.Received.Rate <= 0:
		return 0, errors.New("iperf3 received nothing")
	}
	return r.End.Received.Rate, nil
}

// iperf3Client tries until the server listens.
func (b *bed) iperf3Client(ctx context.Context, n int, d time.Duration) (*running, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second+d)
	defer cancel()
	for until := time.Now().Add(5 * time.Second); ; {
		client, err := b.run(ctx, b.client, "iperf3", "-c", b.server.addr.String(), "-p", strconv.Itoa(streamPort), "-J",
			"-P", strconv.Itoa(n), "-t", strconv.Itoa(int(d.Seconds())))
		refused := client != nil && strings.Contains(client.stdout.String(), "Connection refused")
		if !refused || time.Now().After(until) {
			return client, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// streams holds bulk streams against iperf3, in turn.
func (b *bed) streams(ctx context.Context, out *page, d time.Duration) error {
	d = max(d.Truncate(time.Second), time.Second) // iperf3 knows whole seconds
	idle := measureBusyOthers()
	out.section("Bulk streams beside iperf3", fmt.Sprintf("TCP, %v, %d turns each, one after the other; medians (least to most), ratios within a turn. "+
		"CPU is that of both processes, user and system. Before the first turn other programs kept %.2f of %d CPUs busy.", d, turns, idle, runtime.NumCPU()))
	rows := [][]string{{"connections", "program", "goodput", "ratio to iperf3", "CPU per GiB", "ratio to iperf3"}}
	gbit := func(v float64) string { return unit.BitRate(v).String() }
	for _, n := range streamCounts {
		var own, peer []bulk
		for turn := range turns {
			for k := range 2 {
				if (k+turn)%2 == 0 {
					s, err := b.ownStream(ctx, n, d)
					if err != nil {
						return err
					}
					own = append(own, s)
					continue
				}
				s, err := b.iperf3Stream(ctx, n, d)
				if err != nil {
					return err
				}
				peer = append(peer, s)
			}
		}
		var goodputs, cpuTimes, peerGoodputs, peerTimes, goodputRatios, cpuRatios []float64
		for i := range own {
			goodputs, cpuTimes = append(goodputs, own[i].goodput), append(cpuTimes, own[i].cpuPerGiB)
			peerGoodputs, peerTimes = append(peerGoodputs, peer[i].goodput), append(peerTimes, peer[i].cpuPerGiB)
			goodputRatios, cpuRatios = append(goodputRatios, own[i].goodput/peer[i].goodput), append(cpuRatios, own[i].cpuPerGiB/peer[i].cpuPerGiB)
		}
		rows = append(rows,
			[]string{strconv.Itoa(n), "cnibench", spread(goodputs, gbit), ratio(median(goodputRatios)), spread(cpuTimes, milli), ratio(median(cpuRatios))},
			[]string{strconv.Itoa(n), "iperf3", spread(peerGoodputs, gbit), ratio(1), spread(peerTimes, milli), ratio(1)})
		out.reach(median(goodputRatios) >= 0.97, "over %d connections %s of iperf3's goodput; at least 0.97", n, ratio(median(goodputRatios)))
		out.reach(median(cpuRatios) <= 1, "over %d connections %s of iperf3's CPU time per GiB; at most 1", n, ratio(median(cpuRatios)))
	}
	out.table(rows)
	return nil
}

// measureBusyOthers is how many CPUs were busy over a second (/proc/stat: all but idle and
// waiting for disks), while this program does nothing.
func measureBusyOthers() float64 {
	const pause = time.Second
	before, err := busySeconds()
	if err != nil {
		return 0
	}
	time.Sleep(pause)
	after, err := busySeconds()
	if err != nil {
		return 0
	}
	return (after - before) / pause.Seconds()
}

// busySeconds are user, nice, system, irq, softirq and steal of all CPUs.
func busySeconds() (float64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	c := stat.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, err
}
