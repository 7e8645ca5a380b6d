package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sys/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sys/a"), []byte("a long value\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(dir, "sys/c")); err != nil {
		t.Fatal(err)
	}
	tree := Tree(dir)
	if err := tree.WriteFile("/sys/a", []byte("1\n")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/sys/a", "/../sys/a", "/sys/c"} {
		if got, err := tree.ReadFile(name); err != nil || string(got) != "1\n" {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	names, err := tree.ReadDir("/sys")
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if to, err := tree.Readlink("/sys/c"); err != nil || to != "a" {
		t.Errorf("link to %q, %v", to, err)
	}
	// A setting that the kernel lacks is not made.
	if err := tree.WriteFile("/sys/new", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}
