package importer

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes a run of files that hold figures only: FOLDER/CONTENDER/… or
// FOLDER/CONTENDER.csv, each file of a contender a further round.

// figure is what a file says of one test.
type figure struct {
	line     int
	host     bool   // between nodes, not pods
	test     string // TCP_STREAM, UDP_STREAM, TCP_RR, UDP_RR or TCP_CRR
	path     string // pod, service, same-node
	variant  string // what else tells it from tests of the same name
	streams  int    // 0: the file does not say
	message  int    // bytes, 0: the file does not say
	metrics  map[string]float64
	started  time.Time
	elapsed  unit.Seconds
	unknown  []string // what the file does not say
	mean     int      // the figure is a mean of so many tests; 0 or 1: of one
	problems []result.Reason
	notes    []result.Reason
	fill     func(s *sample, file string) // adds what else the file has; nil: nothing
}

// figureParser reads one file. Errors are *lineError.
type figureParser func(data []byte) ([]figure, error)

// workloads are the tests under the names of workloads.
var workloads = map[string]string{
	"TCP_STREAM": "tcp_stream", "UDP_STREAM": "udp_stream", "TCP_RR": "tcp_rr", "UDP_RR": "udp_rr", "TCP_CRR": "tcp_crr",
}

// step is the step of the figure: its id has what tells it from others of the file.
func (f *figure) step() result.Step {
	s := result.Step{Workload: workloads[f.test], Path: f.path, Params: map[string]any{}}
	id := []string{strings.ReplaceAll(s.Workload, "_", "-")}
	if f.path != "pod" {
		id = append(id, f.path)
	}
	what := []string{strings.ReplaceAll(f.test, "_", " "), map[string]string{"pod": "pod to pod on another node", "service": "pod to Service", "same-node": "pod to pod on the same node"}[f.path]}
	if f.streams > 0 {
		id, what = append(id, fmt.Sprint(f.streams)), append(what, fmt.Sprintf("%d streams", f.streams))
		s.Params["streams"] = f.streams
	}
	if f.message > 0 {
		id, what = append(id, fmt.Sprint(f.message)+"B"), append(what, fmt.Sprintf("messages of %d bytes", f.message))
		s.Params["message-bytes"] = f.message
	}
	if f.variant != "" {
		id, what = append(id, f.variant), append(what, f.variant)
	}
	s.ID, s.Summary = strings.Join(id, "-"), strings.Join(what, ", ")
	return s
}

// contenderOf is the contender of a file: the first folder of its path, or its own name.
func contenderOf(file string) string {
	first, _, inFolder := strings.Cut(file, "/")
	if !inFolder {
		first = strings.TrimSuffix(file, path.Ext(file))
	}
	return clean(cmp.Or(first, "unnamed"))
}

// readFigures makes a run of all files with one of the extensions.
func readFigures(ctx context.Context, src *source, opt Options, suite string, extensions []string, parse figureParser) (*imported, error) {
	names := slices.DeleteFunc(walk(src, ".", 6), func(n string) bool { return !slices.Contains(extensions, path.Ext(n)) })
	parsed, err := parseAll(ctx, src, names, func(_ string, data []byte) ([]figure, error) { return parse(data) })
	if err != nil {
		return nil, err
	}
	in := newImported(suite, opt)
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = contenderOf(name)
	}
	configs, _ := runsOf(labels)
	next := map[result.Key]int{} // the round of the next figure
	for i, figures := range parsed {
		for k := range figures {
			f := &figures[k]
			if workloads[f.test] == "" {
				src.faultf(names[i], f.line, "the test %.40q is not known; it is left out", f.test)
				continue
			}
			key := result.Key{Contender: contenderID(configs[i]), Underlay: result.DefaultUnderlay, Step: f.step().ID}
			if f.host {
				key.Contender = defaultBaseline
			}
			next[key]++
			key.Round = next[key]
			if key.Round > result.MaxRounds {
				src.faultf(names[i], f.line, "more than %d rounds; it is left out", result.MaxRounds)
				continue
			}
			in.samples = append(in.samples, f.sample(key, names[i]))
			if step := f.step(); !slices.ContainsFunc(in.run.Plan.Steps, func(s result.Step) bool { return s.ID == step.ID }) {
				in.run.Plan.Steps = append(in.run.Plan.Steps, step)
			}
		}
	}
	return in.complete(opt)
}

func (f *figure) sample(key result.Key, file string) sample {
	step := f.step()
	s := newSample(key, step.Workload, step.Path)
	s.Kernel, s.Started, s.Elapsed = "unknown", f.started, f.elapsed
	for name, v := range f.metrics {
		s.Metrics[name] = v
	}
	s.required = []string{result.Goodput}
	if !strings.HasSuffix(step.Workload, "_stream") {
		s.required = []string{result.Rate}
	}
	if f.fill != nil {
		f.fill(&s, file)
	}
	for _, p := range f.problems {
		s.invalidate(p.Code, "%s", p.Text)
	}
	s.Notes = append(s.Notes, f.notes...)
	if f.mean > 1 {
		s.note("mean_of_tests", "a mean of %d tests: their own values are not in the file, so that nothing is known of their spread", f.mean)
	}
	if len(f.unknown) > 0 {
		s.note("unknown", "the file does not have: %s", strings.Join(f.unknown, ", "))
	}
	return s
}

func (f *figure) contradict(format string, args ...any) {
	f.problems = append(f.problems, result.Reason{Code: "inconsistent_result", Text: clean(fmt.Sprintf(format, args...))})
}

// set takes a number over; one that is absent, or no number, is not there.
func (f *figure) set(metric, number string, factor float64) {
	if v := parseNumber(strings.TrimSpace(number)); v.known {
		f.metrics[metric] = v.number * factor
	}
}
