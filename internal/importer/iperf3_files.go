package importer

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// readIperf3 reads plain outputs of `iperf3 --json`, a test a file: FOLDER/CONTENDER/….json
// in any folders. What was tested is in the files: protocol and number of streams.
func readIperf3(ctx context.Context, src *source, opt Options) (*imported, error) {
	names := slices.DeleteFunc(walk(src, ".", 6), func(n string) bool { return path.Ext(n) != ".json" && path.Ext(n) != ".stdout" })
	tests := make([]*iperf3Test, len(names))
	if err := parallel(ctx, len(names), func(i int) {
		data := src.read(names[i])
		if data == nil {
			return
		}
		t, err := decodeIperf3(data)
		if err == nil && t.Start.Test.Protocol == "" && t.Error == "" {
			err = errors.New("no test_start; it is no output of iperf3 --json")
		}
		if err != nil {
			fault(src, names[i], err)
			return
		}
		tests[i] = t
	}); err != nil {
		return nil, err
	}
	in := newImported("iperf3", opt)
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = contenderOf(name)
	}
	configs, _ := runsOf(labels)
	next := map[result.Key]int{}
	for i, t := range tests {
		if t == nil {
			continue
		}
		protocol := t.Start.Test.Protocol
		if protocol == "" {
			src.faultf(names[i], 0, "iperf3 says: %s; which test it was is unknown", t.Error)
			continue
		}
		f := figure{test: protocol + "_STREAM", path: "pod", streams: min(max(t.Start.Test.Streams, 1), 1024)}
		if workloads[f.test] == "" {
			src.faultf(names[i], 0, "a test of %.20q is no step of ours; it is left out", protocol)
			continue
		}
		step := f.step()
		key := result.Key{Contender: contenderID(configs[i]), Underlay: result.DefaultUnderlay, Step: step.ID}
		next[key]++
		if key.Round = next[key]; key.Round > result.MaxRounds {
			src.faultf(names[i], 0, "more than %d rounds; it is left out", result.MaxRounds)
			continue
		}
		s := newSample(key, step.Workload, step.Path)
		udp := protocol == "UDP"
		s.required = []string{result.Goodput}
		if udp {
			s.required = append(s.required, result.Loss)
		}
		t.apply(&s, names[i], f.streams, udp)
		if s.Kernel = "unknown"; s.release != "" {
			s.Kernel = upstream(s.release)
		}
		s.note("unknown", "the file does not have: path, kernel of the server, CPU of the nodes")
		in.samples = append(in.samples, s)
		if !slices.ContainsFunc(in.run.Plan.Steps, func(s result.Step) bool { return s.ID == step.ID }) {
			in.run.Plan.Steps = append(in.run.Plan.Steps, step)
		}
	}
	return in.complete(opt)
}
