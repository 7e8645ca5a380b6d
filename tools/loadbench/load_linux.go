package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/load/slicing"
	"github.com/cnibench/cnibench/internal/workload"
)

// responseBytes is a whole response of the 2016 study.
const responseBytes = 350

// nginx starts the server of most parts: one worker, responses from memory.
func (b *bed) nginx(ctx context.Context) (*running, error) {
	config, err := workload.NginxConfig(workload.NginxSetup{Listen: b.target(), Dir: b.dir, Workers: 1, Connections: 1024, Size: responseBytes})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	server, err := b.start(ctx, b.server, "nginx", "-e", "stderr", "-p", b.dir, "-c", file)
	if err != nil {
		return nil, err
	}
	return b.awaitServer(ctx, server)
}

// measured is a load by cnibench, and when its window began by the wall clock.
type measured struct {
	*load.Report
	begin time.Time
	cpu   time.Duration
}

// load has `cnibench load http` with these flags take one slice.
func (b *bed) load(ctx context.Context, lead, length time.Duration, flags ...string) (*measured, error) {
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	answers, out := io.Pipe()
	p, err := b.startBetween(ctx, b.client, in, out, append([]string{b.cnibench, "load", "http", b.url(), "--slices"}, flags...)...)
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	ended := make(chan error, 1)
	go func() {
		ended <- p.wait()
		_ = out.Close() // never fails
	}()
	m := &measured{Report: &load.Report{}}
	talk := slicing.NewClient(orders, answers)
	if err = talk.Ready(); err == nil {
		var report json.RawMessage
		if report, err = talk.Slice(lead, length, func() { m.begin = time.Now() }, nil); err == nil {
			err = json.Unmarshal(report, m.Report)
		}
	}
	err = errors.Join(err, orders.Close())
	_, _ = io.Copy(io.Discard, answers) // so that the program can end
	if failed := <-ended; failed != nil {
		err = failed
	}
	m.cpu = p.cpu()
	return m, err
}

// findMax is the highest rate that `cnibench load http --find-max` finds.
func (b *bed) findMax(ctx context.Context, connections int, d time.Duration) (float64, error) {
	p, err := b.run(ctx, b.client, b.cnibench, "load", "http", b.url(), "--find-max", "--p99", p99Bound.String(),
		"--connections", strconv.Itoa(connections), "--warmup", warmup.String(), "--duration", d.String(), "--json")
	if err != nil {
		return 0, err
	}
	var found struct {
		MaxRate float64 `json:"max_rate"`
	}
	if err := json.Unmarshal(p.stdout.Bytes(), &found); err != nil {
		return 0, fmt.Errorf("output of cnibench load: %w", err)
	}
	return found.MaxRate, nil
}

// startStalling starts cnibench's own server with stalls, and gives its record
// after stop.
func (b *bed) startStalling(ctx context.Context, stall, every time.Duration) (*running, error) {
	server, err := b.start(ctx, b.server, b.cnibench, "serve", "http", "--listen", b.target().String(),
		"--size", strconv.Itoa(responseBytes), "--stall", stall.String(), "--every", every.String(), "--json")
	if err != nil {
		return nil, err
	}
	return b.awaitServer(ctx, server)
}

// stallsOf is the record of a server that has ended.
func stallsOf(server *running) ([]serve.Interval, error) {
	var record struct{ Stalls []serve.Interval }
	if err := json.Unmarshal(server.stdout.Bytes(), &record); err != nil {
		return nil, fmt.Errorf("output of cnibench serve: %w", err)
	}
	return record.Stalls, nil
}

// peer is a closed-loop client that others made.
type peer struct {
	name string
	argv func(url string, connections int, d time.Duration) []string
	rate *regexp.Regexp // of requests per second in its output
}

var (
	plainRate  = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	h2loadRate = regexp.MustCompile(`finished in [^,]+, ([0-9.]+) req/s`)
)

// peers are the clients to compare with, wrk first.
var peers = []peer{
	{"wrk", func(url string, n int, d time.Duration) []string {
		return []string{"wrk", "-t1", "-c" + strconv.Itoa(n), "-d" + seconds(d), url}
	}, plainRate},
	{"wrk2", func(url string, n int, d time.Duration) []string {
		return []string{"wrk2", "-t1", "-c" + strconv.Itoa(n), "-d" + seconds(d), "-R1000000", url}
	}, plainRate},
	{"h2load", func(url string, n int, d time.Duration) []string {
		return []string{"h2load", "--h1", "-t1", "-c" + strconv.Itoa(n), "-D" + strconv.Itoa(max(1, int(d.Seconds()))), url}
	}, h2loadRate},
	{"hey", func(url string, n int, d time.Duration) []string {
		return []string{"hey", "-cpus", "1", "-c", strconv.Itoa(n), "-z", seconds(d), url}
	}, plainRate},
	{"oha", func(url string, n int, d time.Duration) []string {
		return []string{"oha", "--no-tui", "-c", strconv.Itoa(n), "-z", seconds(d), url}
	}, plainRate},
}

// listInstalled are the peers that are there.
func listInstalled() (list []peer) {
	for _, p := range peers {
		if host.Have(p.name) == nil {
			list = append(list, p)
		}
	}
	return list
}

// speed is what a closed loop reached.
type speed struct {
	rate          float64 // 1/s
	cpuPerRequest float64 // s
}

func (b *bed) peerSpeed(ctx context.Context, p peer, connections int, d time.Duration) (speed, error) {
	r, err := b.run(ctx, b.client, p.argv(b.url(), connections, d)...)
	if err != nil {
		return speed{}, err
	}
	rate, err := parseRate(p.rate, r.stdout.Bytes())
	if err != nil {
		return speed{}, fmt.Errorf("%s: %w", p.name, err)
	}
	return speed{rate, r.cpu().Seconds() / (rate * d.Seconds())}, nil
}

func parseRate(pattern *regexp.Regexp, output []byte) (float64, error) {
	found := pattern.FindSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("no rate in its output: %.200q", bytes.TrimSpace(output))
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

func (b *bed) ownSpeed(ctx context.Context, connections int, d time.Duration) (speed, error) {
	m, err := b.load(ctx, 0, d, "--closed", "--connections", strconv.Itoa(connections))
	if err != nil {
		return speed{}, err
	}
	if m.Requests == 0 {
		return speed{}, fmt.Errorf("cnibench load: no request was answered: %v", m.Errors)
	}
	return speed{m.Rate, m.cpu.Seconds() / float64(m.Requests)}, nil
}
