package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// The program is carried into pods over slow links: nothing that is large gets into it.
func TestNothingLarge(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, large := range []string{"k8s.io/", "helm.sh/", "github.com/quic-go/", "net/http", "crypto/tls", "github.com/cnibench/cnibench/internal/run"} {
		if i := slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(p, large) }); i >= 0 {
			t.Errorf("%s is in the program; see `go list -deps ./pod`", packages[i])
		}
	}
}

// What `cnibench tune --arena kube` asks of a node is understood there, on a copied tree.
func TestTuneOnNode(t *testing.T) {
	root := t.TempDir()
	const file = "/proc/sys/net/ipv4/tcp_fin_timeout"
	value := func() string {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	for name, text := range map[string]string{
		file:                             "60\n",
		"/sys/devices/system/cpu/online": "0\n",
		"/sys/class/net/lo/flags":        "0x9\n",
		"/proc/net/route":                "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		args       []string
		says, then string
	}{
		{[]string{"plan", "--json=true", "--sysctl=net.ipv4.tcp_fin_timeout=10"}, "cnibench/tune-plan/1", "60"},
		{[]string{"apply", "--sysctl=net.ipv4.tcp_fin_timeout=10"}, "take back with: how", "10"},
		{[]string{"status", "--json=true"}, `"before": "60"`, "10"},
		{[]string{"revert"}, "1 value restored", "60"},
	} {
		c := newRoot()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(append(append([]string{"tune"}, step.args...), "--arena=node", "--take-back-with=how", "--root="+root, "--"))
		if err := c.Execute(); err != nil || !strings.Contains(out.String(), step.says) || value() != step.then {
			t.Errorf("%s: %v; the value is %s: %s", step.args[0], err, value(), out.String())
		}
	}
	c := newRoot()
	c.SetArgs([]string{"tune", "status", "--arena", "kube"})
	if err := c.Execute(); exit.Code(err) != exit.WrongUsage {
		t.Errorf("a cluster, asked from a pod: %v", err)
	}
}
