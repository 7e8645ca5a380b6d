package vm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestShareable(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link, toKernel := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "to-kernel")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{link: dir, toKernel: "/proc/sys"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, dir, want, err string }{
		{"a folder", dir, dir, ""},
		{"through a link", link + "/link", dir, ""},
		{"memory", "/dev/shm", "/dev/shm", ""},
		{"the root", "/", "", "a guest has a /proc of its own"},
		{"the kernel's files", "/proc", "", "a guest has a /proc of its own"},
		{"below them, by a link", toKernel, "", "a guest has a /proc of its own"},
		{"devices", "/dev/", "", "a guest has a /dev of its own"},
		{"sockets", "/run", "", "a guest has a /run of its own"},
		{"a file", file, "", "not a folder"},
		{"nothing", filepath.Join(dir, "nothing"), "", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := os.Stat(tt.dir); err != nil && tt.name != "nothing" {
				t.Skipf("%v; to run it: on Linux", err)
			}
			got, err := Shareable(tt.dir)
			var wrong *Misuse
			if got != tt.want || errors.As(err, &wrong) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// The first root has no libraries and no loader.
func TestStandsAlone(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	var unsupported *Unsupported
	if err := standsAlone(shell); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("%s: %v", shell, err)
	}
}
