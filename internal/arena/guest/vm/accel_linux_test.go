package vm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a busy host may have caused is not held against KVM for long.
func TestProbe(t *testing.T) {
	dir, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, qemu string
		works      bool
		why        string
		passing    bool
	}{
		{"boots", `printf %s "` + bootMark + `" >&4; exec sleep 10`, true, "", false},
		{"refused", "echo failed to set MSR; exit 1", false, "failed to set MSR", false},
		{"no memory", "echo cannot set up guest memory; exit 1", false, "cannot set up guest memory", true},
		{"ended", "exit 0", false, "ended while it booted", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+tt.qemu+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			var v kvmTrial
			err := v.probe(t.Context(), &Config{Kernel: Kernel{Image: image}, Init: filepath.Join(dir, "guest")})
			if err != nil || v.Works != tt.works || !strings.Contains(v.Why, tt.why) || v.Until.IsZero() == tt.passing {
				t.Errorf("verdict %+v, %v", v, err)
			}
		})
	}
}

func TestRecall(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, tt := range []struct {
		name     string
		kept     kvmTrial
		recalled bool
	}{
		{"of this boot", kvmTrial{BootID: "now", Kernel: "6.1"}, true},
		{"of a boot before", kvmTrial{BootID: "before", Kernel: "6.1"}, false},
		{"for an hour", kvmTrial{BootID: "now", Kernel: "6.1", Until: time.Now().Add(time.Hour)}, true},
		{"out of date", kvmTrial{BootID: "now", Kernel: "6.1", Until: time.Now().Add(-time.Second)}, false},
		{"before the clock was set back", kvmTrial{BootID: "now", Kernel: "6.1", Until: time.Now().Add(2 * time.Hour)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			remember(tt.kept)
			if v, known := recall(kvmTrial{BootID: "now", Kernel: "6.1"}); known != tt.recalled {
				t.Errorf("recalled %+v: %v", v, known)
			}
		})
	}
}

// A cache is cleaned around the guests and downloads that need it.
func TestCleanInUse(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	used, fetching, idle := filepath.Join(kernelsDir(), "6.12"), filepath.Join(kernelsDir(), ".fetch-1"), filepath.Join(kernelsDir(), "6.1")
	for _, dir := range []string{used, fetching, idle} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k := Kernel{Image: filepath.Join(used, "boot", "vmlinuz-6.12")}
	var held []func()
	for range 2 {
		release, err := k.hold()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, release)
	}
	unlock, err := lock(fetching, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := Clean(true); len(gone) != 1 || gone[0] != idle || !errors.Is(err, errInUse) {
		t.Errorf("gone %v, %v", gone, err)
	}
	for _, free := range append(held, unlock) {
		free()
	}
	if _, err := Clean(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(CacheDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cache is still there: %v", err)
	}
	if release, err := (Kernel{Image: "/boot/vmlinuz-6.1"}).hold(); err != nil {
		t.Error(err)
	} else {
		release()
	}
}
