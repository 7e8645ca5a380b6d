package vm

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Whether a kernel reads it, every boot shows.
func TestCpio(t *testing.T) {
	var buf bytes.Buffer
	c := &cpioWriter{w: &buf}
	c.dir("dev")
	c.file("init", 0o700, 5, strings.NewReader("hello"))
	c.file("empty", 0o600, 0, strings.NewReader(""))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "archive.cpio", buf.Bytes())

	c = &cpioWriter{w: &bytes.Buffer{}}
	c.file("init", 0o700, 9, strings.NewReader("short"))
	if err := c.close(); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("a file that shrank: %v", err)
	}
}

func TestArgs(t *testing.T) {
	var buf bytes.Buffer
	for _, m := range []machine{
		{accel: AccelTCG, cpus: 2, memory: 2 << 30, image: "/k/vmlinuz", initramfs: 3, console: 5, port: 4, tscKHz: 2600000,
			shares: []share{{"share0", "/tmp/a,b"}}, squash: true},
		{accel: AccelKVM, cpus: 1, memory: 512 << 20, image: "/k/vmlinuz", initramfs: 3, console: 4, bare: true},
		{accel: AccelTCG, cpus: 3, turns: true, memory: 512 << 20, image: "/k/vmlinuz", initramfs: 3, console: 5, port: 4, nics: []string{e1000NIC, virtioNIC}},
		{accel: AccelKVM, cpus: 4, memory: 512 << 20, image: "/k/vmlinuz", initramfs: 3, console: 5, port: 4, nics: []string{e1000NIC, e1000NIC, virtioNIC, virtioNIC}},
	} {
		buf.WriteString(strings.Join(buildCommand(m.nics, m.args()), "\n") + "\n\n")
	}
	golden(t, "args.golden", buf.Bytes())
}

func TestOpen(t *testing.T) {
	root := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kernel := write("boot/vmlinuz-9.9.9-test", image("9.9.9-test (x) #1"))
	script := write("boot/script", []byte("#!/bin/sh"))
	write("other/8.8.8/modules.dep", nil)
	if _, err := Open(kernel, ""); err == nil || !strings.Contains(err.Error(), "--modules") {
		t.Errorf("without modules: %v", err)
	}
	write("lib/modules/9.9.9-test/modules.dep", nil)
	got, err := Open(kernel, "")
	want := Kernel{Release: "9.9.9-test", Image: kernel, Modules: filepath.Join(root, "lib/modules/9.9.9-test"), Source: "given"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, tt := range []struct{ name, image, modules, err string }{
		{"no kernel", script, "", "not a Linux kernel image"},
		{"no such file", kernel + "x", "", "no such file"},
		{"modules of another kernel", kernel, filepath.Join(root, "other/8.8.8"), "don't belong to kernel 9.9.9-test"},
		{"no modules there", kernel, filepath.Join(root, "boot"), "holds no modules of kernel 9.9.9-test"},
	} {
		if _, err := Open(tt.image, tt.modules); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestClean(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	left, whole := filepath.Join(kernelsDir(), ".fetch-1"), filepath.Join(kernelsDir(), "6.1")
	verdict := filepath.Join(CacheDir(), "kvm-6.1.json")
	for _, dir := range []string{left, whole} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{verdict, verdict + atomicfile.Pending} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := Clean(false)
	if diff := cmp.Diff([]string{left, verdict + atomicfile.Pending}, gone); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	gone, err = Clean(true)
	if diff := cmp.Diff([]string{whole, verdict, kernelsDir(), CacheDir()}, gone); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
