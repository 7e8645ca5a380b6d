package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/workload"
)

// notrackPorts returns the ports of the steps' servers and the UDP ports of the
// contender's encapsulation. without lists the workloads whose servers do not say their
// ports.
func notrackPorts(steps []result.Step, c *contender.Contender) (ports []int, without []string, err error) {
	ports = tunnelPorts(c)
	for _, step := range steps {
		w, err := workload.Lookup(step.Workload)
		if err != nil {
			return nil, nil, err
		}
		serving, ok := w.(workload.Serving)
		if !ok {
			without = append(without, step.Workload)
			continue
		}
		params, err := workload.Complete(w.Info(), step.Params)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range serving.Ports(params) {
			ports = append(ports, int(p.Number))
		}
	}
	slices.Sort(ports)
	slices.Sort(without)
	return slices.Compact(ports), slices.Compact(without), nil
}

// tunnelPorts returns the UDP ports of the contender's pieces that encapsulate: from
// their parameters, else the pieces' defaults.
func tunnelPorts(c *contender.Contender) []int {
	usual := map[string]int{
		"vxlan": 4789, "ebpf-vxlan": 8472, "weave": 6784, "wireguard": 51820,
		"antrea-tunnel": 6081, "ovn-overlay": 6081, // Geneve
	}
	var ports []int
	for _, piece := range []*contender.Piece{c.Lab.Attach, c.Lab.Transport, c.Lab.Encryption} {
		if piece == nil {
			continue
		}
		port, err := strconv.Atoi(fmt.Sprint(piece.Params["port"]))
		if err != nil { // not given
			port = usual[piece.Use]
		}
		if port > 0 {
			ports = append(ports, port)
		}
	}
	return ports
}

// withPorts sets the ports of the setting notrack to those of this run, unless the user
// named ports.
func withPorts(req tune.Request, steps []result.Step, c *contender.Contender) (tune.Request, []string, error) {
	at := slices.IndexFunc(req.Settings, func(c tune.Choice) bool { return c.Setting == "notrack" && c.Params["ports"] == "" })
	if at < 0 {
		return req, nil, nil
	}
	ports, without, err := notrackPorts(steps, c)
	if err != nil {
		return req, nil, err
	}
	if len(ports) == 0 {
		return req, nil, exit.Usage("notrack: the servers of %s do not say their ports; name them with --set notrack.ports=…", strings.Join(without, ", "))
	}
	req.Settings = slices.Clone(req.Settings)
	req.Settings[at].Params = tune.Params{"ports": linux.FormatCPUs(ports)}
	return req, without, nil
}
