package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/tune"
)

// Untracked are the ports of the run's own servers and tunnel, and no others.
func TestNotrackPorts(t *testing.T) {
	piece := func(use string, params map[string]any) *contender.Piece {
		return &contender.Piece{Use: use, Params: params}
	}
	for name, c := range map[string]struct {
		steps   []result.Step
		lab     contender.Lab
		want    string
		without string
	}{
		"streams in VXLAN": {
			[]result.Step{{Workload: "tcp_stream", Params: map[string]any{"streams": 2}}, {Workload: "http_rate", Params: map[string]any{"port": 8081.0}}},
			contender.Lab{Transport: piece("vxlan", map[string]any{"port": 8472})}, "5201-5202,8081,8472", "",
		},
		"files in WireGuard": {
			[]result.Step{{Workload: "scp_copy"}, {Workload: "http3_get"}},
			contender.Lab{Transport: piece("routes", nil), Encryption: piece("wireguard", nil)}, "2222,8443,51820", "",
		},
		"Geneve, and a server that says nothing": {
			[]result.Step{{Workload: "tcp_lat"}, {Workload: "tcp_rr"}},
			contender.Lab{Transport: piece("ovn-overlay", nil)}, "6081,7000", "tcp_lat",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := tune.Request{Settings: []tune.Choice{{Setting: "rps"}, {Setting: "notrack"}}}
			got, without, err := withPorts(req, c.steps, &contender.Contender{Lab: c.lab})
			if err != nil || got.Settings[1].Params["ports"] != c.want || strings.Join(without, " ") != c.without {
				t.Errorf("%v without %v, %v", got.Settings, without, err)
			}
		})
	}
	catalogue, err := run.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"host": "", "flannel-vxlan": "8472", "calico-vxlan": "4789", "cilium-wg": "8472,51871", "antrea": "6081", "flannel-udp": "8285", "weave": "6784",
	} {
		c, err := catalogue.Contender(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := linux.FormatCPUs(tunnelPorts(c)); got != want {
			t.Errorf("%s: tunnel on %s, want %s", id, got, want)
		}
	}
	ftp, _, err := notrackPorts([]result.Step{{Workload: "ftp_get"}}, &contender.Contender{})
	if err != nil || len(ftp) < 2 { // commands, and the files' own connections
		t.Errorf("FTP: %v, %v", ftp, err)
	}
	if _, _, err := withPorts(tune.Request{Settings: []tune.Choice{{Setting: "notrack"}}}, []result.Step{{Workload: "tcp_lat"}}, &contender.Contender{}); err == nil {
		t.Error("notrack without a port was accepted")
	}
	named := tune.Request{Settings: []tune.Choice{{Setting: "notrack", Params: tune.Params{"ports": "1"}}}}
	if got, _, err := withPorts(named, nil, &contender.Contender{}); err != nil || got.Settings[0].Params["ports"] != "1" {
		t.Errorf("the user's own ports: %v, %v", got, err)
	}
}

// A step that is named twice is measured once.
func TestKeepSteps(t *testing.T) {
	p := &result.Plan{Steps: []result.Step{{ID: "dts"}, {ID: "http"}}}
	if err := keepSteps(p, []string{"dts", "dts"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]result.Step{{ID: "dts"}}, p.Steps); diff != "" {
		t.Error(diff)
	}
}
