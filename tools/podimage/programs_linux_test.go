package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// The programs of this machine's packages find every library that they want
// in the image, and nowhere else.
func TestProgramsFindTheirLibraries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the root folder needs root; run as root: go test ./tools/podimage")
	}
	if _, err := os.Stat("/var/lib/dpkg/info"); err != nil {
		needs.Missing(t, "this is no Debian: "+err.Error())
	}
	root := t.TempDir()
	unpackImage(t, root)
	tried := 0
	for _, pattern := range []string{"usr/bin/*", "usr/sbin/*"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !wantsLoader(name) {
				continue
			}
			// The loader lists what it finds instead of starting the program.
			cmd := exec.Command(strings.TrimPrefix(name, root))
			cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"LD_TRACE_LOADED_OBJECTS=1"}, &syscall.SysProcAttr{Chroot: root}
			out, err := cmd.CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("not found")) {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			tried++
		}
	}
	if tried < 50 {
		t.Errorf("only %d programs", tried)
	}
	cmd := exec.Command("/bin/sh", "-c", "id -un && awk 'BEGIN { print 1 }' && command -v sh && cat /usr/local/bin/staged")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"PATH=/usr/sbin:/usr/bin"}, &syscall.SysProcAttr{Chroot: root}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "root\n1\n/usr/bin/sh\nstaged\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// unpackImage writes the image of this machine's packages and unpacks it.
func unpackImage(t *testing.T, root string) {
	t.Helper()
	staged, file := t.TempDir(), filepath.Join(t.TempDir(), "image.tar")
	if err := os.MkdirAll(filepath.Join(staged, "usr/local/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(staged, "usr/local/bin/staged"), []byte("staged\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run("cnibench:test", strings.Split(packages, ","), "", file, []string{runtime.GOARCH + "=" + staged}); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(img)
	defer files.Close()
	cmd := exec.Command("tar", "-x", "-C", root)
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// wantsLoader says whether the file is a program with shared libraries, not a
// script or a link to another program.
func wantsLoader(name string) bool {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	f, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

func TestRunWithout(t *testing.T) {
	for name, test := range map[string]struct {
		staged []string
		want   string
	}{
		"folder":                     {nil, "ARCHITECTURE=FOLDER"},
		"architecture":               {[]string{"bin/image"}, "ARCHITECTURE=FOLDER"},
		"packages of another system": {[]string{"s390x=bin/image"}, "-packages ''"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run("x:1", []string{"dash"}, "", filepath.Join(t.TempDir(), "x"), test.staged); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
