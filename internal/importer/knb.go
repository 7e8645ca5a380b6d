package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// knbReport is what `knb -o json` writes (InfraBuilder/k8s-bench-suite, knb
// 1.0 to 1.5.1). Bandwidths are Mbit/s as iperf3 -f m prints them, decimal;
// CPU is percent of the whole node (sar's %user and so on, softirq and irq
// left out); RAM is what free -m calls used, MiB.
type knbReport struct {
	Metadata struct {
		Name      string `json:"name"`
		Generator string `json:"generator"`
		Version   string `json:"version"`
		Date      string `json:"date"`
	} `json:"metadata"`
	Data struct {
		CPU        string   `json:"cpu"`
		Kernel     string   `json:"kernel"`
		Kubernetes string   `json:"k8s-version"`
		MTU        any      `json:"mtu"` // a text, in some versions a number
		Idle       *knbTest `json:"idle"`
		Pod        knbPair  `json:"pod2pod"`
		Service    knbPair  `json:"pod2svc"`
	} `json:"data"`
}

type knbPair struct {
	TCP *knbTest `json:"tcp"`
	UDP *knbTest `json:"udp"`
}

type knbTest struct {
	Bandwidth *float64 `json:"bandwidth"` // Mbit/s
	Client    knbNode  `json:"client"`
	Server    knbNode  `json:"server"`
}

type knbNode struct {
	RAM *float64 `json:"ram"` // MiB
}

// knbSteps are knb's tests under the ids of the 2024 study, which asks the
// same questions.
var knbSteps = []struct {
	step2024
	of func(*knbReport) *knbTest
}{
	{steps2024[0], func(r *knbReport) *knbTest { return r.Data.Idle }},
	{steps2024[1], func(r *knbReport) *knbTest { return r.Data.Pod.TCP }},
	{steps2024[3], func(r *knbReport) *knbTest { return r.Data.Pod.UDP }},
	{steps2024[5], func(r *knbReport) *knbTest { return r.Data.Service.TCP }},
	{steps2024[7], func(r *knbReport) *knbTest { return r.Data.Service.UDP }},
}

// decodeKnb reads one report. Errors are *lineError.
func decodeKnb(data []byte) (*knbReport, error) {
	r := &knbReport{}
	if _, err := decodeJSON(bytes.ReplaceAll(data, []byte("\r"), []byte(" ")), r); err != nil { // knb before 1.5.0 writes carriage returns
		return nil, err
	}
	if r.Data.Idle == nil && r.Data.Pod == (knbPair{}) && r.Data.Service == (knbPair{}) {
		return nil, &lineError{0, fmt.Errorf("no test in it; it is no report of knb -o json")}
	}
	return r, nil
}

var (
	runInWords = regexp.MustCompile(`(?i)^(.*?)[-_. ]*\brun[-_. ]?([0-9]{1,4})$`)
	runAtEnd   = regexp.MustCompile(`^(.*[^-_ 0-9.])[-_ ]+([0-9]{1,4})$`)
)

// knbName is the name of a report, or else of its file.
func knbName(r *knbReport, file string) string {
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	if n := strings.TrimSpace(r.Metadata.Name); n != "" && !strings.HasPrefix(n, "knb-") { // knb's own are knb-PID
		name = n
	}
	return clean(name)
}

// runsOf splits names into configuration and run. "calico-run2" and "calico - Run 2" are the
// second run of calico. A bare number is one only where the same name comes with 1, 2, … of
// them: calico-1 and calico-2; the 14 of cilium-1.14 is none.
func runsOf(names []string) (configs []string, runs []int) {
	bare := map[string][]int{}
	for _, name := range names {
		if m := runAtEnd.FindStringSubmatch(name); m != nil && !runInWords.MatchString(name) {
			bare[m[1]] = append(bare[m[1]], int(parseNumber(m[2]).number))
		}
	}
	for _, name := range names {
		config, run := name, 1
		if m := runInWords.FindStringSubmatch(name); m != nil {
			config, run = m[1], int(parseNumber(m[2]).number)
		} else if m := runAtEnd.FindStringSubmatch(name); m != nil && countUp(bare[m[1]]) {
			config, run = m[1], int(parseNumber(m[2]).number)
		}
		configs, runs = append(configs, cmp.Or(config, "unnamed")), append(runs, max(run, 1))
	}
	return configs, runs
}

// countUp is whether the numbers are 1 to n, in any order, and more than one.
func countUp(numbers []int) bool {
	distinct := slices.Compact(slices.Sorted(slices.Values(numbers)))
	return len(distinct) > 1 && distinct[0] == 1 && distinct[len(distinct)-1] == len(distinct)
}

// readKnb makes a run of reports, one file a run of a configuration.
func readKnb(ctx context.Context, src *source, opt Options) (*imported, error) {
	names := slices.DeleteFunc(walk(src, ".", 3), func(n string) bool { return path.Ext(n) != ".json" && path.Ext(n) != ".knbdata" })
	reports, err := parseAll(ctx, src, names, func(name string, data []byte) (*knbReport, error) {
		switch {
		case bytes.HasPrefix(data, []byte("\x1f\x8b")):
			return nil, fmt.Errorf("knb's archive; `knb -fd %s -o json` writes the report that import reads", path.Base(name))
		case bytes.HasPrefix(data, []byte("=====")):
			return nil, errors.New("knb's text; `knb -fd ARCHIVE -o json` writes JSON of the run's archive")
		}
		return decodeKnb(data)
	})
	if err != nil {
		return nil, err
	}
	in := newImported("knb", opt)
	in.run.Plan.Duration, in.run.Plan.Warmup = 0, 1 // -O 1; the duration is in no report
	taken := map[result.Key]string{}
	planned := map[string]bool{}
	labels := make([]string, len(reports))
	for i, r := range reports {
		if r != nil {
			labels[i] = knbName(r, names[i])
		}
	}
	configs, runs := runsOf(labels)
	for i, r := range reports {
		if r == nil {
			continue
		}
		id, round := contenderID(configs[i]), runs[i]
		key := result.Key{Contender: id, Round: round}
		if first, again := taken[key]; again {
			src.faultf(names[i], 0, "run %d of %s is in %s already, which counts", round, id, first)
			continue
		}
		taken[key] = names[i]
		for _, step := range knbSteps {
			if test := step.of(r); test != nil {
				planned[step.ID] = true
				in.samples = append(in.samples, knbSample(r, test, id, round, step.step2024))
			}
		}
		env := in.run.Environment
		for key, v := range map[string]string{
			"kernel.release": r.Data.Kernel, "cpu.model": r.Data.CPU, "kubernetes.version": r.Data.Kubernetes,
			"import.knb.version": r.Metadata.Version,
		} {
			if v = clean(v); v != "" {
				join(env, key, v)
			}
		}
		if mtu := parseNumber(fmt.Sprint(r.Data.MTU)); mtu.known && plausibleMTU(int(mtu.number)) > 0 {
			smallest(env, "pod.mtu."+id, int(mtu.number))
		}
	}
	for _, step := range knbSteps {
		if planned[step.ID] {
			def := step.Step
			if !step.idle() {
				def.Params = map[string]any{"streams": 1}
			}
			in.run.Plan.Steps = append(in.run.Plan.Steps, def)
		}
	}
	return in.complete(opt)
}

// knbSample is one test. CPU is left out: percent of a node whose number of
// CPUs the report doesn't say are no CPU-seconds.
func knbSample(r *knbReport, test *knbTest, id string, round int, step step2024) sample {
	s := newSample(result.Key{Contender: id, Underlay: result.DefaultUnderlay, Step: step.ID, Round: round}, step.Workload, step.Path)
	s.Kernel = cmp.Or(upstream(clean(r.Data.Kernel)), "unknown")
	if t, err := time.Parse("2006-01-02 15:04:05", r.Metadata.Date); err == nil {
		s.Started = t.UTC()
	}
	if step.idle() {
		s.required = []string{result.MemoryUsed}
	} else {
		s.required = []string{result.Goodput}
		if test.Bandwidth != nil {
			s.Metrics[result.Goodput] = *test.Bandwidth * 1e6
		}
	}
	for i, node := range []knbNode{test.Client, test.Server} {
		if node.RAM != nil && *node.RAM > 0 {
			s.sides[i].memory = *node.RAM * (1 << 20)
		}
	}
	s.note("cpu_left_out", "knb gives CPU in percent of the node, without softirq and without the number of CPUs: it can't be compared and is left out")
	if step.udp {
		s.note("loss_unknown", "knb gives no loss: a UDP goodput alone does not say how much was dropped")
	}
	s.cost()
	return s
}
