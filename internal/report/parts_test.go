package report

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

// parted is a run whose part was made under a kernel of the same release.
func parted() *analysis.Report {
	whole, part := full(), full()
	part.Run.Arena, part.Run.Environment = "microvm", result.Environment{result.EmulatedKey: "true"}
	part.Plan.Contenders = []result.Entry{{ID: "host", Underlay: "switch"}, {ID: "guests-own", Underlay: "switch"}}
	rename := map[string]string{"host": "host", "macvlan": "guests-own"}
	var results []analysis.Result
	for _, r := range part.Results {
		if name := rename[r.Contender]; name != "" {
			r.Contender, r.Median = name, r.Median/100
			results = append(results, r)
		}
	}
	part.Results = results
	part.Findings = []analysis.Finding{{Severity: "info", Code: analysis.TickAliased, Step: "http-350-20k", Text: "in phase"}}
	whole.Findings = []analysis.Finding{}
	part.Measured = map[result.Key]bool{}
	maps.Copy(part.Measured, map[result.Key]bool{{Contender: "guests-own", Underlay: "switch", Step: "dts"}: true})
	return assemble.Merge(whole, part, "microvm")
}

// TestPartsApart: a part is never ranked with the rest, not even where its
// kernel has the same release.
func TestPartsApart(t *testing.T) {
	v := &sheet{layout.New(parted())}
	var titles []string
	for _, g := range v.Groups {
		titles = append(titles, g.Title())
	}
	want := []string{"kernel 6.18.0, underlay switch", "microvm, kernel 6.18.0 on an emulated CPU, underlay switch"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Fatal(diff)
	}
	for i, g := range v.Groups {
		for _, c := range g.Contenders {
			if (c.ID == "guests-own") != (i == 1) && c.ID != "host" {
				t.Errorf("%s is in group %d", c.ID, i)
			}
		}
		host := g.Figure("host", layout.Column{Step: "dts", Metric: "goodput"})
		if host == nil || (host.Part == "microvm") != (i == 1) {
			t.Errorf("the baseline's figure of group %d is %v", i, host)
		}
		if g.InPhase["http-350-20k"] != (i == 1) {
			t.Errorf("group %d: in phase %v", i, g.InPhase)
		}
		if n := len(v.CostsOf(&v.Groups[i])); n != 1 || len(v.CostsOf(&v.Groups[i])[0].Rows) != len(full().Efficiency) {
			t.Errorf("group %d: %d steps with costs", i, n)
		}
	}
	d := v.pageData()
	for i, row := range d.Results {
		if part := v.Results[i].Part; (part != "") != (row.Group == 1) {
			t.Errorf("a result of part %q is in group %d", part, row.Group)
		}
	}
	for i := range v.Traces {
		if trace := v.traceData(&v.Traces[i]); (v.Traces[i].Part != "") != (trace.Group == 1) {
			t.Errorf("a trace of part %q is in group %d", v.Traces[i].Part, trace.Group)
		}
	}
	if lists := (&sheet{layout.New(parted())}).choice().Lists; len(lists) < 2 || lists[len(lists)-1].Group != 1 {
		t.Errorf("%d lists of choices", len(lists))
	}
}

// TestPartsInFormats: each row says the arena and the part that it is of.
func TestPartsInFormats(t *testing.T) {
	r := parted()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(write(t, "json", r, Options{})))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Error(err)
	}
	for format, want := range map[string][]string{
		"csv":       {`,"lab",`, `,"microvm",`, `true,"microvm",true`, `true,"",false`},
		"benchstat": {"arena: lab\n", "part: none\n", "emulated: false\n", "arena: microvm\n", "part: microvm\n", "emulated: true\n"},
		"openmetrics": {
			`cnibench_run_info{run="` + r.Run.ID + `",arena="microvm",suite="quick",baseline="host",part="microvm",emulated="true"} 1`,
			`contender="guests-own",step="dts",path="pod",kernel="6.18.0",underlay="switch",part="microvm",emulated="true",stat="median"`,
			`cnibench_sample_goodput_bits_per_second{run="` + r.Run.ID + `",contender="guests-own",step="dts",path="pod",kernel="6.18.0",underlay="switch",round="1",verdict="valid",part="microvm",emulated="true"} 1`,
		},
	} {
		opt := Options{}
		if format == "openmetrics" {
			opt.Samples = []Samples{{Part: "microvm", List: []result.Sample{{
				Contender: "guests-own", Kernel: "6.18.0", Underlay: "switch", Round: 1, Step: "dts", Path: "pod", Started: time.Unix(1700000000, 0),
				Verdict: result.Valid, Metrics: map[string]float64{"goodput": 1},
			}}}}
		}
		text := write(t, format, r, opt)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: without %q", format, w)
			}
		}
		if format == "openmetrics" {
			checkOpenMetrics(t, text)
		}
	}
}

// TestRepeatParts: the command makes the parts again, too.
func TestRepeatParts(t *testing.T) {
	r := parted()
	r.Plan.Contenders = []result.Entry{{ID: "host"}, {ID: "macvlan"}}
	r.Plan.Steps = []result.Step{{ID: "sts-svc1", Services: 1}, {ID: "sts-svc100", Services: 100}, {ID: "stm-svc1", Services: 1}}
	r.Plan.Settings["rates"] = "given"
	r.Parts[0].Plan.Settings = map[string]string{"cpus": "client=0", "kernel": "6.1", "vm-cpus": "2"}
	want := `cnibench run --arena auto --suite quick --contenders host,macvlan,guests-own --rounds 6 --duration 3s --warmup 1s --seed 4711 ` +
		`--services 1,100 --rates given --nodes 2 --underlay auto --mtu 1500 --cpus client=0,server=1 --kernel 6.1 --vm-cpus 2`
	if got := repeat(r); got != want {
		t.Errorf("repeat = %s, want %s", got, want)
	}
}

// TestNotRunHere: the head of the list counts what is in it.
func TestNotRunHere(t *testing.T) {
	contender, step := result.Unsupported{Contender: "vpp", Reason: "no"}, result.Unsupported{Contender: "macvlan", Step: "sts", Reason: "no"}
	for want, list := range map[string][]result.Unsupported{
		"1 contender":                   {contender},
		"2 steps":                       {step, step},
		"1 contender, 1 step of others": {contender, step},
	} {
		r := sample(6)
		r.Unsupported = list
		if text := write(t, "text", r, Options{}); !strings.Contains(text, fmt.Sprintf("Not run here (%s)\n", want)) {
			t.Errorf("%v: the head is not %s", list, want)
		}
	}
}
