package mesh

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	w := newWorld(8, 2, 5)
	w.in[3] = 0.4
	w.nodes[2].Name = "<script>alert(1)</script>"
	d := NewDesign(8, 0, w.rng)
	figures := append(w.light(Pod, 300), w.bandwidth(Pod, d)...)
	r := NewReport(w.nodes, figures, w.judge(figures))
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"schema":"cnibench/mesh/1"`, `"kind":"receiver"`, `"to":"node-3"`, `"goodput":`, `"mtu":1450`, `"shared":[]`, `"late":[]`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("the JSON lacks %s: %s", part, b)
		}
	}
	if len(r.Pairs) != 56 {
		t.Errorf("%d pairs", len(r.Pairs))
	}
	text := r.String()
	for _, part := range []string{"what node-3 receives", "cnibench diagnose --nodes node-0,node-3", "Rows send"} {
		if !strings.Contains(text, part) {
			t.Errorf("the text lacks %q:\n%s", part, text)
		}
	}
	var page strings.Builder
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	if s := page.String(); strings.Contains(s, "<script") || !strings.Contains(s, `class="bad3"`) || !strings.Contains(s, "&lt;script&gt;") {
		t.Errorf("the page escapes nothing, or shows no bad cell: %.500s", s)
	}
}

func TestReportOfNothing(t *testing.T) {
	r := NewReport([]Node{{Name: "a"}, {Name: "b"}}, nil, nil)
	var page strings.Builder
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	if r.Matrix(Pod) != "" || !strings.Contains(r.String(), "fewer than three nodes") {
		t.Errorf("got %s", r)
	}
}
