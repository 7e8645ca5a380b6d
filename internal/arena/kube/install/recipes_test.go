package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// kubeVersion is what charts are rendered for: that of the test bed.
const kubeVersion = "v1.34.4"

// given are facts of a cluster that is not there.
var given = map[string]string{
	"pod-cidr": "10.244.0.0/16", "service-cidr": "10.96.0.0/12", "api-host": "10.0.0.1", "api-port": "6443",
	"control-plane-ips": "10.0.0.1", "uplink": "eth0",
	"underlay-cidr": "10.9.0.0/16", "underlay-gateway": "10.9.0.1", "underlay-taken": "10.9.0.1..10.9.0.99", "underlay-interface": "eth1", "underlay-vlan": "0",
}

// TestRecipes renders or parses every recipe as far as its sources are at
// hand: charts of Go modules that are in the module cache (the test bed's own
// module brings flannel and Cilium), and the mirror that CNIBENCH_MIRROR names
// (--mirror's form), where digests are checked, too. What is not at hand is
// listed, no failure.
func TestRecipes(t *testing.T) {
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	local := modulesCharts(t)
	for _, set := range contender.VersionSets() {
		in, err := New(Options{Versions: set, Mirror: os.Getenv("CNIBENCH_MIRROR"), Facts: given, Log: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Kube == nil || c.Kube.None != "" {
				continue
			}
			version, ok := c.Kube.Versions[set]
			if !ok {
				continue
			}
			t.Run(set+"/"+c.ID, func(t *testing.T) {
				at := version.Version
				if mirrored, err := in.Version(c); err == nil {
					at = mirrored
				}
				j := &job{Installer: in, c: c, version: at, facts: newFacts(nil, at, given)}
				for n, s := range c.Kube.StepsOf(set) {
					checkStep(t, j, n, s, local)
				}
			})
		}
	}
}

func checkStep(t *testing.T, j *job, n int, s contender.Step, local map[string][]*chart.Chart) {
	ctx := context.Background()
	switch {
	case s.Chart != nil:
		charts := local[s.Chart.Name]
		if j.source.dir != "" {
			ch, _, err := (chartStep{s.Chart}).load(ctx, j)
			if err != nil && !strings.Contains(err.Error(), "the mirror lacks") {
				t.Fatal(err)
			}
			if err == nil {
				charts = []*chart.Chart{ch}
			}
		}
		if len(charts) == 0 {
			t.Logf("step %d: chart %s %s is not at hand", n, s.Chart.Name, j.version)
		}
		for _, ch := range charts {
			checkChart(t, j, s.Chart, ch)
		}
	case s.Manifest != nil:
		if j.source.dir == "" {
			t.Logf("step %d: %s is not at hand", n, s.Manifest.URL)
			return
		}
		objects, err := manifestStep{s.Manifest}.objects(ctx, j)
		if err != nil && strings.Contains(err.Error(), "the mirror lacks") {
			t.Logf("step %d: %v", n, err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("step %d: %d objects of %s", n, len(objects), s.Manifest.URL)
	case s.Namespace != nil, s.Object != nil, s.Secret != nil:
		if _, err := stepOf(s).(createStep).objects(ctx, j); err != nil {
			t.Fatal(err)
		}
	case s.Patch != nil:
		if _, err := j.fill(ctx, s.Patch.Patch); err != nil {
			t.Fatal(err)
		}
	}
}

// checkChart renders the chart with the recipe's values and wants every
// workload that the recipe waits for in it.
func checkChart(t *testing.T, j *job, c *contender.Chart, ch *chart.Chart) {
	values, err := j.fill(context.Background(), c.Values)
	if err != nil {
		t.Fatal(err)
	}
	// A recipe for the latest version alone may need what older charts lack.
	_, older := j.c.Kube.Versions[contender.Versions2024]
	for path := range leaves(c.Values, "") {
		if !older && ch.Metadata.Version != j.version {
			continue
		}
		if !hasValue(ch.Values, path) && !usesValue(ch, path) {
			t.Errorf("chart %s %s has no value %s", c.Name, ch.Metadata.Version, path)
		}
	}
	r, err := render(ch, c, values, capabilitiesOf(t, kubeVersion), engine.Engine{})
	if err != nil {
		t.Fatalf("chart %s %s: %v", c.Name, ch.Metadata.Version, err)
	}
	objects, err := definitions(ch)
	if err != nil {
		t.Fatalf("chart %s %s: %v", c.Name, ch.Metadata.Version, err)
	}
	objects = append(objects, r.objects...)
	there := map[string]bool{}
	for _, o := range objects {
		there[o.GetKind()+" "+o.GetName()] = true
	}
	for _, s := range j.c.Kube.StepsOf(j.o.Versions) {
		if s.Wait != nil && s.Wait.Of.Kind != "" && !there[s.Wait.Of.Kind+" "+s.Wait.Of.Name] {
			t.Errorf("chart %s %s has no %s %s, which the recipe waits for", c.Name, ch.Metadata.Version, s.Wait.Of.Kind, s.Wait.Of.Name)
		}
	}
	t.Logf("chart %s %s: %d objects", c.Name, ch.Metadata.Version, len(objects))
}

// capabilitiesOf are those of a cluster of the version without other kinds than
// Kubernetes' own.
func capabilitiesOf(t *testing.T, version string) *chartutil.Capabilities {
	t.Helper()
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	c := chartutil.DefaultCapabilities.Copy()
	c.KubeVersion = *parsed
	return c
}

// leaves are the paths of a recipe's values.
func leaves(tree map[string]any, prefix string) map[string]bool {
	all := map[string]bool{}
	for key, value := range tree {
		if sub, ok := value.(map[string]any); ok {
			for path := range leaves(sub, prefix+key+".") {
				all[path] = true
			}
			continue
		}
		all[prefix+key] = true
	}
	return all
}

// hasValue is whether a chart's own values have the path, if only as a null.
func hasValue(values map[string]any, path string) bool {
	key, rest, deeper := strings.Cut(path, ".")
	value, ok := values[key]
	if !ok || !deeper {
		return ok
	}
	sub, ok := value.(map[string]any)
	return ok && hasValue(sub, rest)
}

// usesValue is whether a template asks for the path, though the chart has no
// value of its own for it.
func usesValue(ch *chart.Chart, path string) bool {
	for _, f := range ch.Templates {
		if bytes.Contains(f.Data, []byte(".Values."+path)) {
			return true
		}
	}
	return false
}

// modulesCharts are the charts in folders of Go modules in the module cache.
func modulesCharts(t *testing.T) map[string][]*chart.Chart {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := string(bytes.TrimSpace(out))
	charts := map[string][]*chart.Chart{}
	for name, pattern := range map[string]string{
		"flannel": "github.com/flannel-io/flannel@*/chart/kube-flannel",
		"cilium":  "github.com/cilium/cilium@*/install/kubernetes/cilium",
	} {
		dirs, err := filepath.Glob(filepath.Join(cache, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			ch, err := loader.LoadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			charts[name] = append(charts[name], ch)
		}
	}
	return charts
}

// TestSupports: a contender without a recipe says why, and what helps.
func TestSupports(t *testing.T) {
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]map[string]bool{
		contender.Versions2024:   {"cilium": true, "cilium-netkit": false, "macvlan": false, "host": false, "weave": false},
		contender.VersionsLatest: {"cilium": true, "cilium-netkit": true},
	} {
		in, err := New(Options{Versions: set})
		if err != nil {
			t.Fatal(err)
		}
		for id, ok := range want {
			c, err := contender.Find(all, id)
			if err != nil {
				t.Fatal(err)
			}
			err = in.Supports(c)
			if ok != (err == nil) {
				t.Errorf("%s in %s: %v", id, set, err)
			}
			if u := arena.AsUnsupported(err); err != nil && (u == nil || u.Reason == "" || u.Remedy == "") {
				t.Errorf("%s in %s: %v has no reason or no remedy", id, set, err)
			}
		}
	}
}
