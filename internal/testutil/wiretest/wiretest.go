//go:build linux

// Package wiretest has what the tests of several families of pieces need. Only
// tests may import it. Next: wiretest.go.
package wiretest

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Three returns a fabric of three nodes.
func Three() *wire.Fabric {
	f := &wire.Fabric{MTU: 1500, Overhead: 60, PodNetwork: netip.MustParsePrefix("10.244.0.0/16")}
	for i := range 3 {
		f.Nodes = append(f.Nodes, &wire.Node{
			Index: i, Name: fmt.Sprintf("node%d", i+1),
			Addr:    netip.MustParsePrefix(fmt.Sprintf("10.10.0.%d/16", i+2)),
			PodCIDR: netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i)),
		})
	}
	return f
}

var update = flag.Bool("update", false, "write the golden files")

// Golden compares got with the file of testdata, which -update writes.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}
