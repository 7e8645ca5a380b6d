package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

// TestKernelsApart: contenders under another kernel are a group of their own, with the
// figures that the baseline has there.
func TestKernelsApart(t *testing.T) {
	r := full()
	own := *full()
	rename := map[string]string{"host": "host", "macvlan": "newer"}
	for _, res := range own.Results {
		if name := rename[res.Contender]; name != "" {
			res.Contender, res.Kernel, res.Median = name, "6.19", res.Median/100
			r.Results = append(r.Results, res)
		}
	}
	for _, e := range own.Efficiency {
		e.Kernel = "6.19"
		r.Efficiency = append(r.Efficiency, e)
	}
	r.Plan.Contenders = append(r.Plan.Contenders, result.Entry{ID: "newer", Underlay: "switch"})
	r.Recommendation.Others = []analysis.Recommendation{{Kernel: "6.19", Underlay: "switch", Ranked: []analysis.Choice{{Contender: "newer"}}}}

	v := &sheet{layout.New(r)}
	var titles []string
	for _, g := range v.Groups {
		titles = append(titles, g.Title())
	}
	if diff := cmp.Diff([]string{"kernel 6.18.0, underlay switch", "kernel 6.19, underlay switch"}, titles); diff != "" {
		t.Fatal(diff)
	}
	for i, g := range v.Groups {
		for _, c := range g.Contenders {
			if (c.ID == "newer") != (i == 1) && c.ID != "host" {
				t.Errorf("%s is in group %d", c.ID, i)
			}
		}
		if host := g.Figure("host", layout.Column{Step: "dts", Metric: "goodput"}); host == nil || host.Kernel != g.Kernel {
			t.Errorf("the baseline's figure of group %d is %v", i, host)
		}
		if n := len(v.CostsOf(&v.Groups[i])); n != 1 || len(v.CostsOf(&v.Groups[i])[0].Rows) != len(own.Efficiency) {
			t.Errorf("group %d: %d steps with costs", i, n)
		}
	}
	for i, row := range v.pageData().Results {
		if kernel := v.Results[i].Kernel; (kernel == "6.19") != (row.Group == 1) {
			t.Errorf("a result of kernel %s is in group %d", kernel, row.Group)
		}
	}
	if lists := v.choice().Lists; len(lists) < 2 || lists[len(lists)-1].Group != 1 {
		t.Errorf("%d lists of choices", len(lists))
	}
}

// TestEmulated: tables and data tell that the CPU was emulated.
func TestEmulated(t *testing.T) {
	r := sample(6)
	r.Run.Arena, r.Run.Environment[result.EmulatedKey] = "microvm", "true"
	opt := Options{Samples: []result.Sample{{
		Contender: "host", Kernel: "6.18.0", Underlay: "switch", Round: 1, Step: "dts", Path: "pod", Started: time.Unix(1700000000, 0),
		Verdict: result.Valid, Metrics: map[string]float64{"goodput": 1},
	}}}
	for format, want := range map[string][]string{
		"text":      {"on an emulated CPU, underlay switch"},
		"md":        {"kernel 6.18.0 on an emulated CPU"},
		"csv":       {`,"microvm",`, `true,true,`},
		"benchstat": {"arena: microvm\n", "emulated: true\n"},
		"openmetrics": {
			`cnibench_run_info{run="` + r.Run.ID + `",arena="microvm",suite="quick",baseline="host",emulated="true"} 1`,
			`contender="host",step="dts",path="pod",kernel="6.18.0",underlay="switch",emulated="true",stat="median"`,
			`round="1",verdict="valid",emulated="true"} 1`,
		},
	} {
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

// TestComparedEmulated: a comparison tells it of each run.
func TestComparedEmulated(t *testing.T) {
	c := comparedSample()
	c.New.Emulated = true
	for format, want := range map[string][]string{
		"text": {"on an emulated CPU"}, "json": {`"emulated": false`, `"emulated": true`}, "benchstat": {"emulated: false\n", "emulated: true\n"},
	} {
		var b strings.Builder
		if err := WriteCompare(&b, format, c, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if n := strings.Count(b.String(), w); n != 1 {
				t.Errorf("%s: %q stands there %d times", format, w, n)
			}
		}
	}
}
