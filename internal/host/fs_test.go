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

// A link of a tree leads nowhere outside of it, whatever is to be done there.
func TestTreeLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(outside, []byte("the machine's own\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]string{"absolute": outside, "relative": filepath.Join("..", filepath.Base(filepath.Dir(outside)), "value")} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(filepath.Dir(filepath.Dir(outside)), "tree-"+name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Symlink(link, filepath.Join(dir, "file")), os.Symlink(filepath.Dir(link), filepath.Join(dir, "folder"))); err != nil {
				t.Fatal(err)
			}
			if _, err := os.ReadFile(filepath.Join(dir, "file")); err != nil {
				t.Fatal("the link itself is wrong: ", err)
			}
			tree := Tree(dir)
			for _, name := range []string{"/file", "/folder/value"} {
				if got, err := tree.ReadFile(name); err == nil {
					t.Errorf("%s was read: %q", name, got)
				}
				if err := tree.WriteFile(name, []byte("1\n")); err == nil {
					t.Errorf("%s was written", name)
				}
			}
			if names, err := tree.ReadDir("/folder"); err == nil {
				t.Errorf("the folder was listed: %v", names)
			}
			if got, err := os.ReadFile(outside); err != nil || string(got) != "the machine's own\n" {
				t.Errorf("outside there is %q, %v", got, err)
			}
		})
	}
}
