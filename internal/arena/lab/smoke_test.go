//go:build linux

package lab

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
)

func TestSmoke(t *testing.T) {
	fs, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		t.Logf("%-14s %v %s", f.Name, f.OK, f.Error)
	}
	a, err := New(Options{Nodes: 2, Underlay: "auto", MTU: 1500, Congestion: "auto", CPUs: DefaultPlacement(2), CNIPath: DefaultCNIPath})
	if err != nil {
		t.Fatal(err)
	}
	P := func(use string, with map[string]any) *contender.Piece { return &contender.Piece{Use: use, Params: with} }
	for _, c := range []contender.Contender{
		{ID: "host"},
		{ID: "hgw", Requires: contender.Requires{Underlay: "switch"}, Lab: contender.Lab{Attach: P("bridge", nil), Transport: P("routes", nil), Extras: []contender.Piece{*P("masquerade", nil)}}},
		{ID: "vpc", Requires: contender.Requires{Underlay: "vpc"}, Lab: contender.Lab{Attach: P("bridge", nil), Transport: P("vpc-routes", nil), Extras: []contender.Piece{*P("masquerade", nil)}}},
		{ID: "vxlan", Datapath: contender.Datapath{Overhead: 50}, Lab: contender.Lab{Attach: P("bridge", nil), Transport: P("vxlan", nil), Extras: []contender.Piece{*P("masquerade", nil)}}},
		{ID: "vxlan-nock", Datapath: contender.Datapath{Overhead: 50}, Lab: contender.Lab{Attach: P("bridge", nil), Transport: P("vxlan", map[string]any{"tx-checksum": false}), Extras: []contender.Piece{*P("masquerade", nil)}}},
		{ID: "noencap", Lab: contender.Lab{Attach: P("ptp", nil), Transport: P("routes", nil)}},
		{ID: "macvlan", Lab: contender.Lab{Attach: P("macvlan", nil)}},
	} {
		ctx := context.Background()
		t0 := time.Now()
		n, err := a.Up(ctx, &c)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		up := time.Since(t0)
		p, err := n.Pair("pod")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := p.Server.Start(ctx, host.Command{Argv: []string{"iperf3", "-s", "-1"}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		var out bytes.Buffer
		cl, err := p.Client.Start(ctx, host.Command{Argv: []string{"iperf3", "-c", p.Target.String(), "-t", "1", "-f", "m"}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Wait(); err != nil {
			t.Error(err)
		}
		_ = srv
		t1 := time.Now()
		if err := n.Down(ctx); err != nil {
			t.Error(err)
		}
		lines := bytes.Split(out.Bytes(), []byte("\n"))
		if len(lines) > 5 {
			t.Logf("%s up %v down %v target %v\n%s", c.ID, up, time.Since(t1), p.Target, lines[len(lines)-4])
		}
	}
}
