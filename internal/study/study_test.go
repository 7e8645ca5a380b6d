package study

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/testutil/pagetest"
	"github.com/cnibench/cnibench/studies"
)

var update = flag.Bool("update", false, "write the generated part of docs/studies.md")

const good = `id: x
title: t
by: b
summary: s
run: {all: {suite: quick, rounds: 2}, lab: {mtu: "9000"}, cluster: {nodes: "a,b"}}
as_published: {all: {rounds: 9}, lab: {offload: wire}}
pictures: [{kind: figures, title: p, steps: [dts]}]
`

func TestFlags(t *testing.T) {
	s, err := Read("studies/x.yaml", strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		scale   string
		cluster bool
		want    map[string]string
	}{
		{Machine, false, map[string]string{"suite": "quick", "rounds": "2", "mtu": "9000"}},
		{Machine, true, map[string]string{"suite": "quick", "rounds": "2", "nodes": "a,b"}},
		{Published, false, map[string]string{"suite": "quick", "rounds": "9", "mtu": "9000", "offload": "wire"}},
	} {
		flags, err := s.Flags(tt.scale, tt.cluster)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, value := range flags {
			got[name] = fmt.Sprint(value)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, cluster %v:\n%s", tt.scale, tt.cluster, diff)
		}
	}
	if _, err := s.Flags("publised", false); err == nil || !strings.Contains(err.Error(), `did you mean "published"`) {
		t.Errorf("got %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	for change, want := range map[string]string{
		"id: x|id: y":                               `id "y"; the file's name wants "x"`,
		"suite: quick, |":                           "run.all has no suite",
		"kind: figures|kind: chart":                 `kind "chart"; there are [matrix`,
		"steps: [dts]|steps: []":                    "needs steps",
		"kind: figures|kind: matrix":                "a matrix needs bands",
		"kind: figures|kind: load":                  "a picture over rates needs a metric",
		"steps: [dts]|steps: [dts], metric: godput": `metric "godput" is not in the catalogue`,
		"title: p|titel: p":                         `unknown key "titel"; did you mean "title"`,
		"summary: s|summary: ''":                    "title, by and summary",
		"steps: [dts]|steps: [dts], bands: [{color: blue, word: w}]": `band "blue"`,
	} {
		before, after, _ := strings.Cut(change, "|")
		in := strings.Replace(good, before, after, 1)
		if s, err := Read("studies/x.yaml", strings.NewReader(in)); err == nil {
			t.Errorf("%s: read %+v", change, s)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", change, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Read("studies/x.yaml", strings.NewReader(in))
		if err != nil {
			return
		}
		if _, err := s.Flags(Published, true); err != nil {
			t.Errorf("a study that was read has no flags: %v", err)
		}
		for i := range s.Pictures {
			s.Pictures[i].Select(nil)
		}
	})
}

// TestPage keeps the table of studies equal to the files.
func TestPage(t *testing.T) {
	all, err := Load(studies.FS)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| study | by | suite | pictures | host settings |\n|---|---|---|---|---|\n")
	for _, s := range all {
		var titles []string
		for _, p := range s.Pictures {
			titles = append(titles, p.Title)
		}
		tuning := "none"
		if s.Tuning != "" {
			tuning = "`cnibench tune plan --profile " + s.Tuning + "`"
		}
		fmt.Fprintf(&table, "| [%s](../studies/%s.yaml) | %s | %v | %s | %s |\n", s.ID, s.ID, s.By, s.Run.All["suite"], strings.Join(titles, "; "), tuning)
	}
	pagetest.Check(t, "../../docs/studies.md", *update, map[string]string{"studies": table.String()})
}
