package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
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
