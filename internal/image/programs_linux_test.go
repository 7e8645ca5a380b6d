package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The programs of this machine's packages find every library that they want
// in the image, and nowhere else.
func TestProgramsFindTheirLibraries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the root folder needs root; run as root: go test ./internal/image")
	}
	if _, err := os.Stat("/var/lib/dpkg/info"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("this is no Debian:", err)
	}
	system := newTree()
	if _, err := system.addPackages("/", strings.Split(packages, ",")); err != nil {
		t.Fatal(err)
	}
	system.addSystem()
	if err := system.addLibraries("/", system.programs()); err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	if err := system.archive(&layer); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, &layer, root)
	tried := 0
	for _, name := range system.paths() {
		dir := filepath.Dir(name)
		if e := system.entries[name]; !e.mode.IsRegular() || e.mode&0o111 == 0 || dir != "usr/bin" && dir != "usr/sbin" {
			continue
		}
		if wants, err := needed(filepath.Join(root, name)); err != nil || wants.loader == "" {
			continue // a script
		}
		// The loader lists what it finds instead of starting the program.
		cmd := exec.Command("/" + name)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"LD_TRACE_LOADED_OBJECTS=1"}, &syscall.SysProcAttr{Chroot: root}
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("not found")) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		tried++
	}
	if tried < 50 {
		t.Errorf("only %d programs", tried)
	}
	cmd := exec.Command("/bin/sh", "-c", "id -un && awk 'BEGIN { print 1 }' && command -v sh")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"PATH=/usr/sbin:/usr/bin"}, &syscall.SysProcAttr{Chroot: root}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "root\n1\n/usr/bin/sh\n" {
		t.Errorf("%v: %q", err, out)
	}
}
