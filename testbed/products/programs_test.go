//go:build linux

package products

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/tools/image"
)

// Programs come with the loader of their libraries.
func TestAddPrograms(t *testing.T) {
	tree := image.NewTree()
	if err := addPrograms(tree, "sh", "ls"); err != nil {
		t.Fatal(err)
	}
	isLoader := func(name string) bool { return strings.HasPrefix(path.Base(name), "ld-") }
	if files := tree.Paths(); !slices.ContainsFunc(files, isLoader) {
		t.Error("programs without their loader:", files)
	}
	if err := addPrograms(tree, "no-such-program"); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that does not exist: %v", err)
	}
}
