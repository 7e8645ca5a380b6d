package suite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/suites"
)

func TestLoad(t *testing.T) {
	all, err := Load(suites.FS)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	if diff := cmp.Diff([]string{"latency", "micro", "quick", "throughput"}, ids); diff != "" {
		t.Error(diff)
	}
}

const head = "id: x\nsummary: y\nrounds: 1\nduration: 1s\nwarmup: 0s\nsteps:\n"

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"good":           {head + "- {id: a, workload: idle, path: pod}\n", ""},
		"unknown key":    {head + "- {id: a, worklaod: idle, path: pod}\n", `did you mean "workload"?`},
		"workload":       {head + "- {id: a, workload: idel, path: pod}\n", `step a: unknown workload "idel"; did you mean "idle"?`},
		"parameter":      {head + "- {id: a, workload: http_rate, path: pod, params: {rat: 5}}\n", `did you mean "rate"?`},
		"parameter type": {head + "- {id: a, workload: http_rate, path: pod, params: {rate: fast}}\n", "want a number or a share"},
		"twice":          {head + "- {id: a, workload: idle, path: pod}\n- {id: a, workload: idle, path: pod}\n", "step a: twice"},
		"setup":          {head + "- {id: setup, workload: idle, path: pod}\n", "not a step id"},
		"escape":         {head + "- {id: ../a, workload: idle, path: pod}\n", "not a step id"},
		"no path":        {head + "- {id: a, workload: idle}\n", "no path"},
		"no steps":       {"id: x\nsummary: y\nrounds: 1\nduration: 1s\nwarmup: 0s\nsteps: []\n", "no steps"},
		"no rounds":      {strings.Replace(head, "rounds: 1", "rounds: 0", 1) + "- {id: a, workload: idle, path: pod}\n", "rounds"},
		"other name":     {strings.Replace(head, "id: x", "id: z", 1) + "- {id: a, workload: idle, path: pod}\n", "not the file's name"},
		"half a ladder":  {head + "- {id: a, workload: http_rate, path: pod, ladder: {given: [1000], auto: []}}\n", "no auto rates"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("suites/x.yaml", strings.NewReader(c.in))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestLadder(t *testing.T) {
	s, err := Read("suites/x.yaml", strings.NewReader(head+
		"- {id: http-350, workload: http_rate, path: pod, params: {response: 350B}, ladder: {given: [1000, 50000], auto: [10%, 50%]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for rates, want := range map[string]map[string]any{
		RatesGiven: {"http-350-1k": 1000.0, "http-350-50k": 50000.0},
		RatesAuto:  {"http-350-10pct": "10%", "http-350-50pct": "50%"},
	} {
		steps, err := s.Expand(rates)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, step := range steps {
			got[step.ID] = step.Params["rate"]
			if step.Params["response"] != "350B" {
				t.Errorf("%s lost a parameter: %v", step.ID, step.Params)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(rates, diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(head + "- {id: a, workload: idle, path: pod}\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Read("suites/x.yaml", strings.NewReader(in))
		if err == nil && len(s.Steps) == 0 {
			t.Error("a suite without steps was accepted")
		}
	})
}
