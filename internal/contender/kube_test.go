package contender_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/google/go-cmp/cmp"
)

// recipe is the smallest good one.
const recipe = `kube:
  checked: written
  versions:
    "2024": {version: v1, source: the study}
    latest: {version: v2, source: its repository, looked-up: "2026-11-21"}
  steps:
    - chart:
        repo: https://example.org
        name: x
        release: x
        namespace: x
        values: {cidr: "${pod-cidr}"}
    - only: [latest]
      wait:
        of: {api-version: v1, kind: Node, name: n}
        for: Ready
  leftovers: {interfaces: [xyz0], files: [/run/x], chains: [XYZ-]}
`

func readKube(t *testing.T, kube string) (*contender.Kube, error) {
	t.Helper()
	c, err := contender.Read("contenders/x.yaml", strings.NewReader(valid+kube))
	if err != nil {
		return nil, err
	}
	return c.Kube, nil
}

func TestReadKube(t *testing.T) {
	k, err := readKube(t, recipe)
	if err != nil {
		t.Fatal(err)
	}
	want := []contender.Step{
		{Chart: &contender.Chart{
			Repo: "https://example.org", Name: "x", Release: "x", Namespace: "x",
			Values: map[string]any{"cidr": "${pod-cidr}"},
		}},
		{Only: []string{"latest"}, Wait: &contender.Wait{Of: contender.Object{APIVersion: "v1", Kind: "Node", Name: "n"}, For: "Ready"}},
	}
	if diff := cmp.Diff(want, k.StepsOf("latest")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:1], k.StepsOf("2024")); diff != "" {
		t.Error(diff)
	}
}

func TestReadKubeErrors(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown key", "  leftovers: {interfaces", "  leftovers: {interface", `contenders/x.yaml:38: unknown key "interface"; did you mean "interfaces"?`},
		{"steps and none", "kube:\n", "kube:\n  none: no\n", `contenders/x.yaml: kube: it has steps and kube.none; keep one`},
		{"remedy without none", "kube:\n", "kube:\n  remedy: run y\n", `contenders/x.yaml: kube.remedy belongs to kube.none`},
		{"not checked", "  checked: written\n", "", `contenders/x.yaml: kube.checked is missing`},
		{"version set", `"2024": {`, `"2042": {`, `contenders/x.yaml: unknown kube.versions "2042"; did you mean "2024"?`},
		{"no source", ", source: the study", "", `contenders/x.yaml: kube.versions.2024.source: say where the version is from`},
		{"no day", `, looked-up: "2026-11-21"`, "", `contenders/x.yaml: kube.versions.latest.looked-up: want the day on which it was current, YYYY-MM-DD`},
		{"two actions", "    - only: [latest]\n", "    - only: [latest]\n      namespace: {name: x}\n", `contenders/x.yaml: kube.steps: a step has exactly one of namespace, node-labels, chart, manifest, object, secret, patch, wait, farewell`},
		{"placeholder", "${pod-cidr}", "${pod-cdir}", `contenders/x.yaml: kube.steps.chart.values: unknown placeholder "pod-cdir"; did you mean "pod-cidr"?`},
		{"digest", "        name: x\n", "        name: x\n        sha256: {latest: abc}\n", `contenders/x.yaml: kube.steps.chart.sha256.latest: want 64 hexadecimal digits`},
		{"a whole tree", "/run/x", "/run", `contenders/x.yaml: kube.leftovers: /run: want an absolute path at least two folders deep`},
		{"any interface", "[xyz0]", `["*"]`, `contenders/x.yaml: kube.leftovers: * is too short to name what one product leaves`},
		{"wait for nothing", "kind: Node, ", "", `contenders/x.yaml: kube.steps.wait.of: api-version, kind and name are all needed`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := strings.Replace(recipe, tt.old, tt.new, 1)
			if in == recipe {
				t.Fatalf("%q is not in the recipe", tt.old)
			}
			_, err := readKube(t, in)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpandAll(t *testing.T) {
	fact := func(name string) (string, error) {
		if name == "pod-cidr" {
			return "10.0.0.0/16", nil
		}
		return "", errors.New("no " + name)
	}
	tree := map[string]any{"a": []any{"x ${pod-cidr}", 1, map[string]any{"b": "${TMP}"}}}
	got, err := contender.ExpandAll(tree, fact)
	if err != nil {
		t.Fatal(err)
	}
	// ${TMP} is no placeholder: those are in lower case.
	want := map[string]any{"a": []any{"x 10.0.0.0/16", 1, map[string]any{"b": "${TMP}"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := contender.Expand("${uplink}", fact); fmt.Sprint(err) != "no uplink" {
		t.Errorf("got %v", err)
	}
}

// TestKubeSections: every contender but the baseline has a recipe or says why
// it has none, and what the studies of 2024 installed can be installed.
func TestKubeSections(t *testing.T) {
	for _, c := range catalogue(t) {
		switch k := c.Kube; {
		case k == nil && c.ID != "host":
			t.Errorf("%s says nothing of clusters", c.ID)
		case k == nil || k.None != "":
			for _, study := range c.Studies {
				if study == "2024" && c.ID != "host" {
					t.Errorf("%s was installed by the 2024 study, but has no recipe: %s", c.ID, k.None)
				}
			}
		default:
			for set := range k.Versions {
				if len(k.StepsOf(set)) == 0 {
					t.Errorf("%s: no steps for %s", c.ID, set)
				}
			}
		}
	}
}
