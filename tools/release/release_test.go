package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var here = target{"linux", runtime.GOARCH}

// made is a release of this checkout's commit for this machine, without the
// image, from a clone of its own.
func made(t *testing.T, env ...string) *release {
	t.Helper()
	dir := t.TempDir()
	r := &release{
		root: filepath.Join(dir, "clone"), work: filepath.Join(dir, "work"), dist: filepath.Join(dir, "dist"), version: "v1.2.3", commit: "0123456789abcdef",
		time: time.Unix(1700000000, 0).UTC(), targets: []target{here}, demo: "macvlan,canal",
	}
	r.ldflags = "-s -w -X github.com/cnibench/cnibench/internal/cli.version=" + r.version + " -X github.com/cnibench/cnibench/internal/cli.commit=" + r.commit
	run(t, "git", "clone", "-q", "../..", r.root)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	if err := r.write(false); err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

func sums(t *testing.T, r *release) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRelease(t *testing.T) {
	r := made(t)
	t.Run("the same bytes from another folder and an empty cache", func(t *testing.T) {
		cache := t.TempDir()
		if diff := cmp.Diff(sums(t, r), sums(t, made(t, "GOCACHE="+cache))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("checksums", func(t *testing.T) {
		c := exec.Command("sha256sum", "-c", "--quiet", "SHA256SUMS")
		c.Dir = r.dist
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("version", func(t *testing.T) {
		if got := run(t, r.program(here), "version"); !strings.HasPrefix(got, "cnibench v1.2.3 (commit 0123456789abcdef, ") {
			t.Error(got)
		}
	})
	t.Run("deb", func(t *testing.T) {
		deb := filepath.Join(r.dist, r.name(here.String()+".deb"))
		for field, want := range map[string]string{
			"Package": "cnibench", "Version": "1.2.3", "Architecture": here.arch, "Depends": "",
			"Recommends": "containernetworking-plugins, iproute2, iptables, nftables, nginx-light",
		} {
			if got := strings.TrimSpace(run(t, "dpkg-deb", "--field", deb, field)); got != want {
				t.Errorf("%s: %q, want %q", field, got, want)
			}
		}
		if suggests := run(t, "dpkg-deb", "--field", deb, "Suggests"); !strings.Contains(suggests, "openvswitch-switch") || strings.Contains(suggests, "nginx-light") {
			t.Errorf("Suggests: %s", suggests)
		}
		files := run(t, "dpkg-deb", "--contents", deb)
		for _, want := range []string{"./usr/bin/cnibench\n", "./usr/share/man/man1/cnibench-run.1\n", "./usr/share/bash-completion/completions/cnibench\n"} {
			if !strings.Contains(files, want) {
				t.Errorf("%q is not in\n%s", want, files)
			}
		}
		if strings.Contains(files, "systemd") {
			t.Errorf("a unit is in\n%s", files)
		}
	})
	t.Run("deb in a minimal root without Go", func(t *testing.T) { installed(t, r) })
	t.Run("bill of materials", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(r.dist, r.name(here.String()+".cdx.json")))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BOMFormat  string
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range bom.Components {
			names = append(names, c.Name)
			if c.Version == "" {
				t.Errorf("%s has no version", c.Name)
			}
		}
		if all := strings.Join(names, " ") + " "; bom.BOMFormat != "CycloneDX" || !strings.Contains(all, "std ") || !strings.Contains(all, "github.com/spf13/cobra ") || !strings.Contains(all, "k8s.io/client-go ") {
			t.Errorf("%s: %s", bom.BOMFormat, all)
		}
	})
	t.Run("chart", func(t *testing.T) {
		chart := run(t, "tar", "--extract", "--to-stdout", "--file", filepath.Join(r.dist, "cnibench-chart_1.2.3.tgz"), "cnibench/Chart.yaml", "cnibench/values.yaml")
		for _, want := range []string{"\nversion: 1.2.3\n", "\nappVersion: \"1.2.3\"\n", "\nimage: cnibench:1.2.3\n"} {
			if !strings.Contains(chart, want) {
				t.Errorf("%q is not in\n%s", want, chart)
			}
		}
	})
	t.Run("krew", func(t *testing.T) { krew(t, r) })
}

// installed installs the .deb with what it recommends in a root that debootstrap
// made, and compares a pod network there.
func installed(t *testing.T, r *release) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("scripts/fresh-root needs root")
		}
		t.Skip("scripts/fresh-root needs root: run `make test-release` as root")
	}
	deb := r.name(here.String() + ".deb")
	const use = `set -e
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "/src/$1" >/dev/null 2>&1
! command -v go
cnibench version
# The gate's exit code 4 is for a machine too busy for a valid sample.
cnibench run --suite quick --arena lab --contenders macvlan --rounds 1 --duration 500ms --out run || [ $? -eq 4 ]
test -s run/report.html
cnibench report run --format csv || [ $? -eq 4 ]`
	out := run(t, filepath.Join(r.root, "scripts/fresh-root"), "--without-go", "--file", filepath.Join(r.dist, deb), "--", "sh", "-c", use, "sh", deb)
	for _, want := range []string{"cnibench v1.2.3 ", "macvlan"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// krew holds the manifest against krew's own validation and installs from it.
func krew(t *testing.T, r *release) {
	manifest := filepath.Join(r.dist, "cnibench.yaml")
	run(t, "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", manifest)
	root := t.TempDir()
	for name, value := range map[string]string{"KREW_ROOT": root, "KREW_OS": here.os, "KREW_ARCH": here.arch} {
		t.Setenv(name, value)
	}
	run(t, "go", "tool", "krew", "install", "--manifest", manifest, "--archive", filepath.Join(r.dist, r.archive(here)))
	if got := run(t, filepath.Join(root, "bin/kubectl-cnibench"), "--help"); !strings.Contains(got, "kubectl cnibench") {
		t.Error(got)
	}
}

func TestNumber(t *testing.T) {
	at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3-4-gabc": "1.2.3-4-gabc", "abc": "0.0.0-20260102.g0123456789ab", "abc-dirty": "0.0.0-20260102.g0123456789ab.dirty",
	} {
		r := release{version: version, commit: "0123456789abcdef", time: at}
		if got := r.number(); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestPlanned(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"iperf3_3.18-2_arm64.deb", "libiperf0_3.18-2_arm64.deb", "left_1_arm64.deb"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plan := "Reading package lists...\nInst libiperf0 (3.18-2 Debian:13 [arm64])\nInst iperf3 (3.18-2 Debian:13 [arm64])\nConf iperf3 (3.18-2 Debian:13 [arm64])\n"
	got, err := planned(plan, dir)
	want := []string{filepath.Join(dir, "libiperf0_3.18-2_arm64.deb"), filepath.Join(dir, "iperf3_3.18-2_arm64.deb")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := planned(plan+"Inst qperf (0.4)\n", dir); err == nil || !strings.Contains(fmt.Sprint(err), "qperf") {
		t.Errorf("an archive that is missing: %v", err)
	}
}
