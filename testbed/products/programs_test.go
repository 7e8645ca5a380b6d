//go:build linux

package products

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLdd(t *testing.T) {
	for _, test := range []struct {
		name, file, text string
		want             []string
		err              string
	}{
		{
			name: "libraries and loader",
			text: "\tlinux-vdso.so.1 (0x00007ffd3a5f2000)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1d)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f1e)\n",
			want: []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"},
		},
		{name: "static", text: "\tstatically linked\n"},
		{name: "missing", text: "\tlibgone.so.1 => not found\n", err: "libgone.so.1 not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseLdd(strings.NewReader(test.text))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func FuzzParseLdd(f *testing.F) {
	recorded, err := filepath.Glob("testdata/ldd/*.txt")
	if err != nil || len(recorded) == 0 {
		f.Fatal("no recorded output of ldd", err)
	}
	for _, path := range recorded {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, text string) {
		paths, err := parseLdd(strings.NewReader(text))
		if err == nil && slices.ContainsFunc(paths, func(p string) bool { return !filepath.IsAbs(p) }) {
			t.Errorf("a library without its place: %q", paths)
		}
	})
}

// Every file that the programs want is there, with the links above it.
func TestUserland(t *testing.T) {
	u := newUserland()
	if err := u.add(context.Background(), "sh", "ls"); err != nil {
		t.Fatal(err)
	}
	files := u.list()
	loader := false
	for _, f := range files {
		if f.Source != "" {
			if _, err := os.Stat(f.Source); err != nil {
				t.Error(err)
			}
		}
		loader = loader || strings.HasPrefix(filepath.Base(f.Path), "ld-")
		if target, err := os.Readlink("/bin"); err == nil && strings.HasPrefix(f.Path, "/bin/") {
			t.Errorf("%s is below a link to %s", f.Path, target)
		}
	}
	if !loader {
		t.Error("programs without their loader: ", files)
	}
	if err := u.add(context.Background(), "no-such-program"); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: %v", err)
	}
}
