package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file reads the result tree of the 2024 CNI benchmark
// (InfraBuilder/benchmark-k8s-cni-2024-01): CONFIGURATION/RUN/ holds, for each
// step, what client and server printed, a .results file made by the study's
// script, and statexec's files where they were kept; results.prom beside the
// runs repeats the .results files.

// Study2024 is the suite of such a run.
const Study2024 = "study-2024"

// lineRate2024 is the link of that study; its files don't say it.
const lineRate2024 = 40e9

// step2024 is a step of the study: 60 s each, with iperf3 -O 1.
type step2024 struct {
	result.Step
	streams int
	udp     bool
}

func (s step2024) idle() bool { return s.streams == 0 }

var steps2024 = func() []step2024 {
	list := []step2024{{Step: result.Step{ID: "idle", Summary: "no load", Workload: "idle", Path: "pod"}}}
	for _, path := range []string{"pod", "service"} {
		for _, protocol := range []string{"tcp", "udp"} {
			for _, streams := range []int{1, 8} {
				s := step2024{streams: streams, udp: protocol == "udp"}
				s.ID = map[string]string{"pod": "d", "service": "s"}[path] + protocol[:1] + map[int]string{1: "s", 8: "m"}[streams]
				s.Workload, s.Path = protocol+"_stream", path
				s.Summary = fmt.Sprintf("%s, %s, %d streams", map[string]string{"pod": "pod to pod", "service": "pod to Service"}[path], strings.ToUpper(protocol), streams)
				s.Summary = strings.Replace(s.Summary, "1 streams", "1 stream", 1)
				s.Params = map[string]any{"streams": streams, "zerocopy": true}
				if s.udp {
					s.Params["bandwidth"] = "0"
				}
				list = append(list, s)
			}
		}
	}
	return list
}()

// aliases are configurations of the study that the catalogue has under another
// id, and spellings of other studies.
var aliases = map[string]string{
	"baremetal": "host", "bare-metal": "host", "flannel": "flannel-vxlan",
	"kube-ovn": "kubeovn", "kube-router": "kuberouter", "weavenet": "weave", "weave-net": "weave",
}

// contenderID is the catalogue's id of a configuration.
func contenderID(name string) string { return cmp.Or(aliases[name], name) }

// readInfrabuilder reads the tree.
func readInfrabuilder(ctx context.Context, src *source, opt Options) (*imported, error) {
	configs := findConfigs(src)
	if len(configs) == 0 {
		return nil, fmt.Errorf("%w: no folder CONFIGURATION/RUN with files such as dts-client.stdout; give the folder that holds the configurations, such as results", ErrNothing)
	}
	var runs []*run2024
	for _, c := range configs {
		for _, n := range slices.Sorted(maps.Keys(c.runs)) {
			runs = append(runs, c.runs[n])
		}
	}
	if err := parallel(ctx, len(runs), func(i int) { runs[i].readInfo(src) }); err != nil {
		return nil, err
	}

	in := newImported(Study2024, opt)
	var jobs []func()
	in.plan(configs)
	for i := range in.samples {
		s := &in.samples[i]
		r := runOf(configs, s)
		step := steps2024[slices.IndexFunc(steps2024, func(st step2024) bool { return st.ID == s.Step })]
		jobs = append(jobs, func() { r.readStep(src, s, step) })
	}
	if err := parallel(ctx, len(jobs), func(i int) { jobs[i]() }); err != nil {
		return nil, err
	}
	noteMissingRecordings(src, runs)
	in.describe(src, runs, &opt)
	return in.complete(opt)
}

// plan makes a sample for every step that a configuration has in any run: one
// that lacks it in all runs never took it.
func (in *imported) plan(configs []*config) {
	planned := map[string]bool{}
	for _, c := range configs {
		for _, step := range steps2024 {
			has := false
			for _, r := range c.runs {
				has = has || r.has(step.ID)
			}
			if !has {
				continue
			}
			planned[step.ID] = true
			for _, n := range slices.Sorted(maps.Keys(c.runs)) {
				s := newSample(result.Key{Contender: c.id, Underlay: result.DefaultUnderlay, Step: step.ID, Round: n}, step.Workload, step.Path)
				switch {
				case step.idle():
					s.required = []string{result.MemoryUsed}
				case step.udp:
					s.required = []string{result.Goodput, result.Loss, result.Jitter}
				default:
					s.required = []string{result.Goodput, result.Retransmits}
				}
				in.samples = append(in.samples, s)
			}
		}
	}
	for _, step := range steps2024 {
		if planned[step.ID] {
			in.run.Plan.Steps = append(in.run.Plan.Steps, step.Step)
		}
	}
	in.run.Plan.Duration, in.run.Plan.Warmup = 60, 1
}

// readInfo reads what belongs to the whole run.
func (r *run2024) readInfo(src *source) {
	r.all = values{}
	if r.files["all.results"] {
		file := path.Join(r.dir, "all.results")
		var wrong []complaint
		r.all, wrong = parseKeyValues(bytes.NewReader(src.read(file)))
		complain(src, file, wrong)
	}
	for _, side := range sideNames {
		if release, ok := info(src, r, "info-"+side+".uname", parseUname); ok {
			if r.kernel != "" && r.kernel != release {
				src.faultf(path.Join(r.dir, "info-"+side+".uname"), 0, "kernel %s, and %s at the client", release, r.kernel)
			}
			r.kernel = cmp.Or(r.kernel, release)
		}
		if mtus, ok := info(src, r, "info-"+side+".interfaces", parseInterfaces); ok {
			for name, mtu := range mtus {
				if old, seen := r.mtus[name]; seen && old != mtu {
					src.faultf(path.Join(r.dir, "info-"+side+".interfaces"), 0, "%s has an MTU of %d, and %d at the client", name, mtu, old)
				}
			}
			if r.mtus == nil {
				r.mtus = mtus
			}
		}
	}
	if policy, ok := info(src, r, "info-netpol", parseNetpol); ok {
		r.policy = policy
	}
}

// readStep fills in the sample from the step's files.
func (r *run2024) readStep(src *source, s *sample, step step2024) {
	if !r.has(step.ID) && len(r.summaryOf(step)) == 0 {
		s.invalidate("missing_result", "%s has no file of %s", r.dir, step.ID)
		return
	}
	r.checkCommands(src, step)
	vs := r.stepValues(src, step)
	prefix := strings.ToUpper(step.ID)
	if !step.idle() {
		r.readTest(src, s, step, vs)
	}
	for i, side := range sideNames {
		name := prefix + "_" + strings.ToUpper(side)
		s.sides[i].cpu = map[string]float64{}
		for _, mode := range []string{"user", "system"} {
			if v := vs[name+"_"+strings.ToUpper(mode)]; v.known {
				s.sides[i].cpu[mode] = v.number
			}
		}
		if v := vs[name+"_MEM"]; v.known && v.number > 0 {
			s.sides[i].memory = v.number
		}
		r.readRecording(src, s, step, i)
	}
	s.cost()
}

// readTest takes over what the client's iperf3 printed; where that is no
// report, what the study's script had made of it.
func (r *run2024) readTest(src *source, s *sample, step step2024, vs values) {
	name := step.ID + "-client.stdout"
	file := path.Join(r.dir, name)
	var test *iperf3Test
	err := errors.New("missing")
	if r.files[name] {
		err = errors.New("could not be read")
		if data := src.read(file); data != nil {
			test, err = decodeIperf3(data)
		}
	}
	prefix := strings.ToUpper(step.ID)
	if err == nil {
		test.apply(s, file, step.streams, step.udp)
		if v, made := vs[prefix+"_BW"], s.Metrics[result.Goodput]; v.known && differ(v.number, made) {
			src.faultf(v.file, v.line, "%s_BW is %s, and %g in %s, which counts", prefix, v.text, made, name)
		}
		if k := test.kernel(); k != "" && r.kernel != "" && k != r.kernel {
			src.faultf(file, 0, "kernel %s, and %s by uname", k, r.kernel)
		}
		return
	}
	fault(src, file, err)
	bw := vs[prefix+"_BW"]
	if !bw.known || bw.number <= 0 {
		s.invalidate("missing_result", "%s: %v; iperf3 left no result", file, err)
		return
	}
	s.note("from_summary", "%s: %v; the figures are those of %s", file, err, bw.file)
	s.Metrics[result.Goodput] = bw.number
	for key, m := range map[string]struct {
		name   string
		factor float64
	}{"_RTS": {result.Retransmits, 1}, "_JITTER": {result.Jitter, 1e-3}, "_LOST": {result.Loss, 1e-2}} {
		if v := vs[prefix+key]; v.known {
			s.Metrics[m.name] = v.number * m.factor
		}
	}
	s.leaveOutJitter(60)
}

// readRecording takes in statexec's file of one side, where it was kept.
func (r *run2024) readRecording(src *source, s *sample, step step2024, side int) {
	name := step.ID + "-" + sideNames[side] + ".prom"
	if !r.files[name] {
		return
	}
	file := path.Join(r.dir, name)
	data := src.read(file)
	if data == nil {
		return
	}
	f, err := decodeStatexec(data)
	if err != nil {
		fault(src, file, err)
		return
	}
	if !src.keep(file, f.size()) {
		return
	}
	for _, l := range []struct{ name, want string }{
		{"id", r.config.name}, {"run", strconv.Itoa(r.round)}, {"instance", step.ID}, {"role", sideNames[side]},
	} {
		if got, has := f.labels[l.name]; has && got != l.want {
			src.faultf(file, 0, "its label %s is %q instead of %q: it belongs elsewhere and is not used", l.name, got, l.want)
			return
		}
	}
	if s.Started.IsZero() && !f.begin.IsZero() {
		s.Elapsed = unit.Seconds(f.end.Sub(f.begin).Seconds())
	}
	if f.cut > 0 {
		src.faultf(file, f.cut, "cut off; what is before it is kept as a recording, no figures are taken from it")
		s.record(f, side)
		return
	}
	s.side(src, file, f, side)
}
