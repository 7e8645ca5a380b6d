package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// One command installs, measures and removes each product, and its report is
// that of a lab: the same contenders, steps and figures.
func TestKubeRunInstalls(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	bed.WithoutPodNetwork(t)

	products := []string{"flannel-host-gw", "flannel-vxlan", "cilium"}
	three := slices.Concat(brief, []string{"--contenders", strings.Join(products, ",")})
	r := kubeRun(t, slices.Concat(three, []string{"--install", "--scratch", "--versions", "latest", "--mirror", bed.Mirror(t)})...)
	cluster := r.measured(t)
	lab := newRun(t, three...)
	inLab := lab.measured(t)
	for _, id := range append(products, "host") {
		got := columns(cluster, id)
		if len(got) != 2 {
			t.Errorf("%s: samples of %d steps, want 2: %s", id, len(got), r.stderr.String())
		}
		if diff := gocmp.Diff(columns(inLab, id), got); diff != "" {
			t.Errorf("%s: figures of a lab's run and of this one:\n%s", id, diff)
		}
	}
	for _, s := range cluster.Samples {
		if s.Step == result.SetupStep && s.Verdict != result.Valid {
			t.Errorf("%s was not set up: %v", s.Contender, s.Reasons)
		}
		for _, name := range []string{result.InstallSteps, result.InstallObjects, result.InstallImages, result.InstallImageSize} {
			if s.Step == result.SetupStep && s.Contender != "host" && s.Metrics[name] <= 0 {
				t.Errorf("%s: no %s: %v, %v", s.Contender, name, s.Metrics, s.Notes)
			}
		}
	}
	if diff := gocmp.Diff(outline(t, lab.dir, inLab), outline(t, r.dir, cluster)); diff != "" {
		t.Errorf("the report of a lab's run and of this one:\n%s", diff)
	}
	validate(t, "run-1.schema.json", read(t, filepath.Join(r.dir, "run.json")))
}

// Products are installed through their published manifests, by the digests that the
// recipes pin, and leave rules, ipsets, interfaces, settings and nodes as they were. Of Canal
// the test bed lacks the version of flannel. make test-products sets the variable.
func TestKubeRunInstallsPublished(t *testing.T) {
	bed := kubetest.GetBed(t)
	leavesNothing(t)
	bed.WithoutPodNetwork(t)
	products, versions := []string{"kuberouter"}, "2024"
	if wanted := os.Getenv("CNIBENCH_TEST_PRODUCTS"); wanted != "" {
		products, versions = strings.Fields(wanted), "modules"
	}
	held := func() string {
		return bed.OnNode(t, "node-1", `
			for save in iptables-save ip6tables-save; do $save | sed 's/\[[0-9:]*\]//; /^#/d' | grep -v KUBE-S; done
			ipset list -name
			ip -brief link show | cut -d' ' -f1
			ip rule show
			ip route show table all
			cd /proc/sys/net; grep -H . ipv4/ip_forward ipv4/conf/*/rp_filter bridge/*
			ls /etc/cni/net.d /opt/cni/bin
			find /run/calico /var/lib/calico /var/log/calico /run/flannel 2>/dev/null; true`) +
			bed.Do(t, "kubectl", "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.annotations}{.spec.taints[?(@.key==\"node.kubernetes.io/network-unavailable\")]}{end}")
	}
	before := held()
	for _, product := range products {
		t.Run(product, func(t *testing.T) {
			r := kubeRun(t, slices.Concat(brief, []string{"--contenders", product, "--install", "--scratch", "--versions", versions, "--mirror", bed.Mirror(t)})...)
			rec := r.measured(t)
			if got := columns(rec, product); len(got) != 2 {
				t.Errorf("samples of %d steps, want 2: %s", len(got), r.stderr.String())
			}
			if said := r.stderr.String(); strings.Contains(said, "differs from the published file") && product != "canal" {
				t.Errorf("the manifest is not the published one: %s", said)
			}
			if diff := gocmp.Diff(before, held()); diff != "" {
				t.Errorf("node-1 before and after:\n%s", diff)
			}
		})
	}
}

// outline is what a quiet machine's report of the record has, whatever the figures are: the
// heads of its tables. A busy machine spoils samples and clocks, and a table of a step has no
// column without a valid figure, so all are taken as valid. Figures that columns leaves out, or
// that only an installation has, are taken out.
func outline(t *testing.T, dir string, rec *result.Record) []string {
	t.Helper()
	for i := range rec.Samples {
		s := &rec.Samples[i]
		for _, spoiled := range s.DroppedClocks {
			maps.Copy(s.Metrics, spoiled.Metrics)
		}
		s.Verdict, s.Reasons, s.DroppedClocks, s.Histograms = result.Valid, nil, nil, nil
		maps.DeleteFunc(s.Metrics, func(name string, _ float64) bool {
			return !everywhere(name) || strings.HasPrefix(name, "install_")
		})
	}
	var out strings.Builder
	if err := report.Write(&out, string(report.Markdown), report.Assemble(dir, rec, analysis.Options{}), report.Options{}); err != nil {
		t.Fatal(err)
	}
	var list []string
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "|") && i > 0 && lines[i-1] == "" {
			list = append(list, line)
		}
	}
	return list
}
