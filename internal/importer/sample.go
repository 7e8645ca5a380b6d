package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// imported is a source as a run, before it is on the disk.
type imported struct {
	run     result.Run
	samples []sample
}

// sample is a sample with what it was made from.
type sample struct {
	result.Sample
	sides      [2]sideFigures      // client, server
	recordings []*sysmon.Recording // client first; those that there are
	cookie     string              // of its iperf3 test, different for each
	release    string              // of the client's kernel, as iperf3 had it
	mss        int                 // of TCP, as iperf3 had it, bytes
	required   []string            // metrics that its workload always gives
	planned    unit.Seconds        // of the measured window
}

// sideFigures are what one node used.
type sideFigures struct {
	cpu    map[string]float64 // by mode, CPU-seconds per second; those that are known
	memory float64            // bytes; 0 is unknown
}

var sideNames = [2]string{"client", "server"}

// What lies beyond these is a slip of the source, whatever the link.
const (
	maxGoodput   = 1e13 // bit/s
	maxCPUs      = 1e4
	maxPlausible = 1e16 // bytes
)

func newSample(key result.Key, workload, path string) sample {
	return sample{Sample: result.Sample{
		Contender: key.Contender, Underlay: key.Underlay, Step: key.Step, Round: key.Round,
		Workload: workload, Path: path, Verdict: result.Valid, Metrics: map[string]float64{},
	}}
}

// side takes a recording in. What summary files say of the side counts; the
// recording adds the modes that they leave out, and is held against them.
func (s *sample) side(src *source, file string, f *statexecFile, side int) {
	seen, err := f.figures()
	if err != nil {
		fault(src, file, err)
	}
	known := &s.sides[side]
	if known.cpu == nil {
		known.cpu = map[string]float64{}
	}
	for _, mode := range result.CPUModes {
		own, has := seen.cpu[mode]
		said, had := known.cpu[mode]
		switch {
		case has && !had:
			known.cpu[mode] = own
		case has && math.Abs(own-said) > 0.01+0.05*said:
			src.faultf(file, 0, "CPU in mode %s is %g in it and %g in the summary, which counts", mode, own, said)
		}
	}
	if known.memory == 0 {
		known.memory = seen.memory
	} else if seen.memory > 0 && math.Abs(seen.memory-known.memory) > 0.05*known.memory {
		src.faultf(file, 0, "memory used is %g in it and %g in the summary, which counts", seen.memory, known.memory)
	}
	s.record(f, side)
}

// record keeps the recording itself.
func (s *sample) record(f *statexecFile, side int) {
	rec := f.label(sideNames[side], s.Started)
	if side == 0 {
		s.recordings = slices.Insert(s.recordings, 0, rec)
	} else {
		s.recordings = append(s.recordings, rec)
	}
}

// cost adds what the step cost, as far as it is known: a sum that lacks a mode
// is no sum.
func (s *sample) cost() {
	var whole, userSystem int // sides that are known
	var busy, notIdle, userAndSystem, memory float64
	for i, side := range s.sides {
		name := "cpu_" + sideNames[i]
		for mode, v := range side.cpu {
			if v < 0 || v > maxCPUs {
				s.invalidate("missing_result", "%s_%s is %g, which is impossible", name, mode, v)
			}
			s.Metrics[name+"_"+mode] = v
		}
		if _, has := side.cpu["system"]; has {
			if _, has := side.cpu["user"]; has {
				userSystem++
				userAndSystem += (side.cpu["user"] + side.cpu["system"]) / 2
			}
		}
		if all(side.cpu) {
			whole++
			own := side.cpu["user"] + side.cpu["nice"] + side.cpu["system"] + side.cpu["irq"] + side.cpu["softirq"]
			s.Metrics[name] = own
			busy += own
			notIdle += (own + side.cpu["iowait"] + side.cpu["steal"]) / 2
		}
		memory += side.memory / 2
	}
	if s.sides[0].memory > 0 && s.sides[1].memory > 0 {
		s.Metrics[result.MemoryUsed] = memory
		if memory > maxPlausible {
			s.invalidate("missing_result", "memory_used is %g bytes, which is impossible", memory)
		}
	}
	gbit := s.Metrics[result.Goodput] / 1e9
	if gbit <= 0 {
		return
	}
	if userSystem == 2 && userAndSystem > 0 {
		s.Metrics[result.CPUPerGbitUserSystem] = userAndSystem / gbit
	}
	if whole == 2 && busy > 0 {
		s.Metrics[result.CPUPerGbit] = busy / gbit
		s.Metrics[result.CPUPerGbitPublished] = notIdle / gbit
	}
}

func all(modes map[string]float64) bool {
	for _, mode := range result.CPUModes {
		if _, has := modes[mode]; !has {
			return false
		}
	}
	return true
}

// judge finds what can't be true of the sample's own values.
func (s *sample) judge(lineRate unit.BitRate, mtu int, overhead unit.Bytes) {
	if len(s.Reasons) > 0 {
		return // that results are missing is the consequence
	}
	if v := s.Metrics[result.Goodput]; v > maxGoodput {
		s.invalidate("missing_result", "goodput is %g bit/s, which is impossible", v)
	}
	if v := s.Metrics[result.Loss]; v > 1 {
		s.invalidate("missing_result", "loss is %g, above 1, which is impossible", v)
	}
	var ceiling unit.BitRate
	if lineRate > 0 && mtu > 0 {
		ceiling = unit.Ceiling(lineRate, mtu, int(overhead), s.Workload == "udp_stream")
	}
	for _, r := range result.Judge(&s.Sample, result.JudgeContext{
		LineRate: lineRate, Ceiling: ceiling, Duration: s.planned, Required: s.required,
	}) {
		s.invalidate(r.Code, "%s", r.Text)
	}
	if took := s.Elapsed; s.planned > 0 && took > 1.02*s.planned {
		s.note("long_window", "%.1f s measured of %.0f s planned", float64(took), float64(s.planned))
	}
}

// dropImpossible takes out values that no run may hold; the reasons have them.
func (s *sample) dropImpossible() {
	for name, v := range s.Metrics {
		if v < 0 || math.IsInf(v, 0) || name == result.Loss && v > 1 {
			delete(s.Metrics, name)
		}
	}
	s.Elapsed = max(0, s.Elapsed)
}

// refuseCopies finds samples whose test is another's: a file copied into a
// second place makes noise look smaller than it is.
func (in *imported) refuseCopies() {
	first := map[string]*sample{}
	for i := range in.samples {
		s := &in.samples[i]
		if s.cookie == "" {
			continue
		}
		if f := first[s.cookie]; f != nil {
			s.invalidate("duplicate_sample", "it is the very test of %s, step %s, round %d (same iperf3 cookie): one of them is a copy", f.Contender, f.Step, f.Round)
			continue
		}
		first[s.cookie] = s
	}
}

// newImported is an empty run of that suite.
func newImported(suite string, opt Options) *imported {
	return &imported{run: result.Run{
		Arena: Arena, Baseline: cmp.Or(opt.Baseline, defaultBaseline),
		Plan:        result.Plan{Suite: suite, Settings: map[string]string{}, Unpaired: true},
		Environment: result.Environment{},
	}}
}

// checkBaseline returns a *text.UnknownError if the source lacks the baseline that was asked for.
func (in *imported) checkBaseline() error {
	ids := make([]string, len(in.run.Plan.Contenders))
	for i, entry := range in.run.Plan.Contenders {
		ids[i] = entry.ID
	}
	if base := in.run.Baseline; base != defaultBaseline && !slices.Contains(ids, base) {
		return text.Unknown("baseline", base, ids)
	}
	return nil
}

// complete judges the samples, puts them in the order in which they were taken
// and describes the run by them.
func (in *imported) complete(opt Options) (*imported, error) {
	if len(in.samples) == 0 {
		return nil, ErrNothing
	}
	run := &in.run
	in.refuseCopies()
	overhead := in.contenders(opt)
	for i := range in.samples {
		s := &in.samples[i]
		s.judge(opt.LineRate, opt.MTU, overhead[s.Contender])
		for k := range s.Reasons {
			if r := &s.Reasons[k]; opt.assumed && r.Code == "above_line_rate" {
				r.Text += fmt.Sprintf("; %s is what import assumes: import again with --line-rate", unit.Format(float64(opt.LineRate), "bit/s"))
			}
		}
		s.dropImpossible()
		run.Plan.Rounds = max(run.Plan.Rounds, s.Round)
		if !s.Started.IsZero() && (run.Started.IsZero() || s.Started.Before(run.Started)) {
			run.Started = s.Started
		}
	}
	if opt.LineRate > 0 {
		run.Plan.Settings["line-rate"] = opt.LineRate.String()
	}
	if opt.assumed {
		run.Environment["import.line-rate"] = "assumed"
	}
	if opt.MTU > 0 {
		run.Plan.Settings["mtu"] = strconv.Itoa(opt.MTU)
	}
	run.ID = run.Plan.Suite + "-" + run.Started.Format("20060102-150405")
	run.Environment["import.format"] = run.Plan.Suite
	in.sortByTime()
	for i := range in.samples {
		in.samples[i].Order = i + 1
	}
	return in, nil
}

// sortByTime puts the samples in the order in which they were taken. One whose
// time nothing tells, as that of an idle node, comes before the first test of
// its own run, where the studies have it.
func (in *imported) sortByTime() {
	type ofRun struct {
		contender string
		round     int
	}
	first := map[ofRun]time.Time{}
	for i := range in.samples {
		s := &in.samples[i]
		at := ofRun{s.Contender, s.Round}
		if begun, known := first[at]; !s.Started.IsZero() && (!known || s.Started.Before(begun)) {
			first[at] = s.Started
		}
	}
	slices.SortStableFunc(in.samples, func(a, b sample) int {
		atA, atB := a.Started, b.Started
		if atA.IsZero() {
			atA = first[ofRun{a.Contender, a.Round}]
		}
		if atB.IsZero() {
			atB = first[ofRun{b.Contender, b.Round}]
		}
		return cmp.Or(atA.Compare(atB), a.Started.Compare(b.Started))
	})
}

// contenders fills in plan and descriptions, the baseline first, and returns
// the overhead of each.
func (in *imported) contenders(opt Options) map[string]unit.Bytes {
	overhead := map[string]unit.Bytes{}
	var entries []result.Entry
	for i := range in.samples {
		e := result.Entry{ID: in.samples[i].Contender, Underlay: in.samples[i].Underlay}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b result.Entry) int {
		switch base := in.run.Baseline; {
		case a.ID == b.ID:
			return 0
		case a.ID == base:
			return -1
		case b.ID == base:
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	in.run.Plan.Contenders = entries
	for _, e := range entries {
		info := result.ContenderInfo{ID: e.ID, Product: e.ID, Summary: "not in the catalogue"}
		if opt.Describe != nil {
			if known, ok := opt.Describe(e.ID); ok {
				info = known
			}
		}
		overhead[e.ID] = info.Overhead
		in.run.Contenders = append(in.run.Contenders, info)
	}
	return overhead
}
