package run

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// A run takes the rates of an earlier one, and its capacities, so that `compare` knows
// that the rates were shares.
func TestRatesFrom(t *testing.T) {
	step := func(id string, rate any) result.Step {
		return result.Step{ID: id, Workload: "http_rate", Path: "pod", Params: map[string]any{"rate": rate, "connections": 64}}
	}
	shared := step("http", 20003.0)
	load, err := shared.Load()
	if err != nil {
		t.Fatal(err)
	}
	earlier := runOf(Lab, "host")
	earlier.Schema = result.RunSchema
	earlier.Plan.Steps = []result.Step{shared, {ID: "dts", Workload: "tcp_stream", Path: "pod"}}
	earlier.Plan.Capacity = map[string]float64{load: 66000}
	dir := filepath.Join(t.TempDir(), "earlier")
	writeRun(t, dir, earlier, sampleOf(result.Valid, "dts", "6.12"))

	f := Request{RatesFrom: dir}
	plan := result.Plan{Steps: []result.Step{step("http", "30%"), step("given", 500.0)}}
	params := maps.Clone(plan.Steps[0].Params)
	given := plan.Steps[0].Params
	if err := f.takeRates(&plan); err != nil {
		t.Fatal(err)
	}
	if rate := plan.Steps[0].Params["rate"]; rate != 20003.0 || plan.Steps[1].Params["rate"] != 500.0 || plan.Capacity[load] != 66000 || plan.RatesFrom != "r" {
		t.Errorf("rate %v, capacities %v, from %q", rate, plan.Capacity, plan.RatesFrom)
	}
	if d := cmp.Diff(params, given); d != "" {
		t.Errorf("the suite's own parameters changed: %s", d)
	}

	other := step("http", "30%")
	other.Params["connections"] = 8
	for name, test := range map[string]struct {
		step result.Step
		want string
	}{
		"another step":     {step("http-90", "90%"), "found no rate for step http-90"},
		"other parameters": {other, "found no rate for step http "},
		"no share":         {step("http", 500.0), "no step of the plan takes a share"},
	} {
		err := f.takeRates(&result.Plan{Steps: []result.Step{test.step}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	absent := Request{RatesFrom: filepath.Join(dir, "absent")}
	if err := absent.takeRates(&plan); err == nil || !strings.Contains(err.Error(), "--rates-from") {
		t.Errorf("an absent run: %v", err)
	}
}
