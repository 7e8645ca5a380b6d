package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// image returns a bzImage as far as readRelease reads one.
func image(version string) []byte {
	b := make([]byte, 0x400)
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x20e:], 0x100)
	copy(b[0x300:], version+"\x00")
	return b
}

func TestReadRelease(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want string
		err  string
	}{
		{"debian", image("6.12.117+deb12-amd64 (debian-kernel@lists.debian.org) #1 SMP"), "6.12.117+deb12-amd64", ""},
		{"no kernel", []byte("#!/bin/sh\n"), "", "not a Linux kernel image for x86"},
		{"empty", nil, "", "not a Linux kernel image for x86"},
		{"no version", image(""), "", "not a Linux kernel image for x86: its header contains no version"},
		{"a path in the version", image("../../etc #1"), "", "not a Linux kernel image for x86: its header contains no version"},
		{"cut", image("6.1")[:0x210], "", "not a Linux kernel image for x86: its header contains no version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readRelease(bytes.NewReader(tt.data))
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && (err.Error() != tt.err || !errors.Is(err, ErrNoKernel)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestClosure(t *testing.T) {
	deps, err := readModulesDep(strings.NewReader(`kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko.xz:
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz
kernel/fs/netfs/netfs.ko.xz:
kernel/drivers/virtio/virtio-mmio.ko.xz:
`))
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := readBuiltin(strings.NewReader("kernel/drivers/virtio/virtio_pci.ko\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := deps.closure([]string{"virtio_mmio", "virtio_pci", "9pnet_virtio", "9p"}, builtin)
	want := []string{
		"kernel/drivers/virtio/virtio-mmio.ko.xz", "kernel/net/9p/9pnet.ko.xz", "kernel/net/9p/9pnet_virtio.ko.xz",
		"kernel/fs/netfs/netfs.ko.xz", "kernel/fs/9p/9p.ko.xz",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := deps.closure([]string{"overlay"}, nil); err == nil || err.Error() != "the kernel has no module overlay" {
		t.Errorf("a missing module: %v", err)
	}
	if _, err := readModulesDep(strings.NewReader("fine.ko:\nno colon\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a damaged line: %v", err)
	}
}

func TestReleases(t *testing.T) {
	for _, tt := range []struct {
		release, version string
		want             bool
	}{
		{"6.1.0-56-amd64", "6.1", true},
		{"6.1.0-56-amd64", "6.1.0", true},
		{"6.12.117+deb12-amd64", "6.1", false},
		{"6.12.117+deb12-amd64", "6.12", true},
		{"6", "6.12", false},
	} {
		if got := ofVersion(tt.release, tt.version); got != tt.want {
			t.Errorf("ofVersion(%q, %q) = %v", tt.release, tt.version, got)
		}
	}
	if compareReleases("6.12.1", "6.9.100") <= 0 {
		t.Error("6.12 is older than 6.9")
	}
	for text, want := range map[string]bool{"6.12": true, "/boot/vmlinuz": false, "vmlinuz": false, "": false, "6": false} {
		if isVersion(text) != want {
			t.Errorf("isVersion(%q) = %v", text, !want)
		}
	}
}

func TestConsole(t *testing.T) {
	c := newConsole()
	seen := c.watchFor("Kernel panic")
	for range 2000 {
		_, _ = c.Write([]byte("noise of a long boot\r\n"))
	}
	_, _ = c.Write([]byte("\x1b[2J\x1b[1;1H[    1.0] Out of memory: Killed process 1\r\n\r\n[    1.1] Kernel pa"))
	_, _ = c.Write([]byte("nic - not syncing\x00\n"))
	select {
	case <-seen:
	default:
		t.Error("a text in two pieces was not seen")
	}
	want := []string{"noise of a long boot", "[    1.0] Out of memory: Killed process 1", "[    1.1] Kernel panic - not syncing"}
	if diff := cmp.Diff(want, c.lines(3)); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
	if len(c.tail) > consoleBytes {
		t.Errorf("kept %d bytes", len(c.tail))
	}
	if reason, remedy := c.verdict(); reason != "the guest ran out of memory (Out of memory: Killed process 1)" || remedy != moreMemory {
		t.Errorf("verdict: %q, %q", reason, remedy)
	}
	if reason, _ := newConsole().verdict(); reason != "the guest ended by itself" {
		t.Errorf("verdict of silence: %q", reason)
	}
}

func TestVersion(t *testing.T) {
	for text, several := range map[string]bool{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright": false,
		"QEMU emulator version 8.0.4":             false,
		"QEMU emulator version 8.1.0":             true,
		"QEMU emulator version 10.0.2 (Debian …)": true,
	} {
		v, err := parseVersion(text)
		if err != nil || v.emulatesSeveralCPUs() != several {
			t.Errorf("%.40q: %v, %v", text, v, err)
		}
	}
	if _, err := parseVersion("no such program"); err == nil {
		t.Error("a text without a version was read")
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(image("6.1.0-56-amd64 (x) #1"))
	f.Add([]byte("a.ko: b.ko\nb.ko:\n"))
	f.Add([]byte("QEMU emulator version 7.2.22"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if release, err := readRelease(bytes.NewReader(data)); err == nil && (release == "" || strings.ContainsAny(release, "/ \n")) {
			t.Errorf("release %q", release)
		}
		if deps, err := readModulesDep(bytes.NewReader(data)); err == nil {
			for module := range deps {
				if _, err := deps.closure([]string{module}, nil); err != nil {
					t.Errorf("%q is there and can't be found: %v", module, err)
				}
			}
		}
		_, _ = readBuiltin(bytes.NewReader(data))
		_, _ = parseVersion(string(data))
		c := newConsole()
		_, _ = c.Write(data)
		c.verdict()
	})
}
