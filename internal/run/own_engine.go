package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/suite"
)

// needsWhole are workloads that run parts of this program which the program for pods lacks.
var needsWhole = []string{"http3_get"}

// ownEngine returns the suite as pods carry it out whose image has a shell and no more: with
// this program's own server and sender where a step allows that, without the steps that
// want programs of others. notes say what changed. The error is an *arena.Unsupported if no
// step is left.
func ownEngine(s *suite.Suite) (_ *suite.Suite, notes []string, err error) {
	out := *s
	out.Steps = nil
	var served, sent, left []string
	for _, step := range s.Steps {
		switch {
		case slices.Contains(needsWhole, step.Workload):
			left = append(left, step.ID+" (the whole of cnibench)")
			continue
		case len(stepPrograms(step.Workload, step.Params)) == 0:
		case step.Workload == "http_rate" && step.Params["file"] != true:
			step.Params = with(step.Params, "server", "cnibench")
			served = append(served, step.ID)
		case step.Workload == "tcp_stream" && unlimited(step.Params):
			step.Workload, step.Params = "tcp_bulk", bulkParams(step.Params)
			sent = append(sent, step.ID)
		case step.Workload == "udp_stream" && unlimited(step.Params) && step.Params["zerocopy"] != true:
			step.Workload, step.Params = "udp_bulk", bulkParams(step.Params)
			sent = append(sent, step.ID)
		default:
			left = append(left, fmt.Sprintf("%s (%s)", step.ID, strings.Join(programs.Workload(step.Workload), ", ")))
			continue
		}
		out.Steps = append(out.Steps, step)
	}
	const image = "the image of `make image`, given with --image, has them"
	if len(out.Steps) == 0 {
		return nil, nil, &arena.Unsupported{
			Reason: fmt.Sprintf("the steps of suite %s run programs that images with just a shell lack: %s", s.ID, strings.Join(left, ", ")),
			Remedy: image + "; the suites quick, rr, latency and throughput run without",
		}
	}
	if len(served) > 0 {
		notes = append(notes, "cnibench's own server answers in place of nginx: "+strings.Join(served, ", "))
	}
	if len(sent) > 0 {
		notes = append(notes, "cnibench's own sender in place of iperf3: "+strings.Join(sent, ", "))
	}
	if len(left) > 0 {
		notes = append(notes, "left out, since they run programs of others: "+strings.Join(left, ", ")+"; "+image)
	}
	return &out, notes, nil
}

// justAShell reports whether the pods have no program but this one.
func (f *Request) justAShell() bool {
	return f.Kind().Cluster && (f.Cluster.Image == "" || kube.JustAShell(f.Cluster.Image))
}

// unlimited reports whether iperf3 sends as fast as it can.
func unlimited(params map[string]any) bool {
	rate := params[result.BandwidthParam]
	return rate == nil || rate == "0"
}

// bulkParams are iperf3's parameters as the own sender has them.
func bulkParams(params map[string]any) map[string]any {
	own := map[string]any{}
	if streams, given := params["streams"]; given {
		own["streams"] = streams
	}
	if params["zerocopy"] == true {
		own["zero_copy"] = true
	}
	return own
}

func with(params map[string]any, name string, value any) map[string]any {
	all := maps.Clone(params)
	if all == nil {
		all = map[string]any{}
	}
	all[name] = value
	return all
}

// stepPrograms lists the programs of others that a step with those parameters runs.
func stepPrograms(workload string, params map[string]any) []string {
	if params["server"] == "cnibench" {
		return nil
	}
	return programs.Workload(workload)
}
