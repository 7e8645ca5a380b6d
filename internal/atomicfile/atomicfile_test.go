package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/testutil/disktest"
)

// Whatever write, sync or rename fails, and whatever a power cut leaves: the file is the
// old one or the new one, whole, the new one if Replace said so, and it can be
// replaced again.
func TestDiskFails(t *testing.T) {
	replacement.Every(t)
	replacement.Finds(t, disktest.NoSync, disktest.NoFolderSync, disktest.LateWrite, disktest.InPlace, disktest.EarlyRename)
}

const oldText, newText = "the old text", "a new text that is longer"

// replacement returns the text that was acknowledged last.
var replacement = disktest.Suite[string]{
	Do: func(d *disktest.Disk) string {
		last := ""
		for _, text := range []string{oldText, newText} {
			if atomicfile.Replace(d.Folder(), "file", writes(text)) != nil {
				break
			}
			last = text
		}
		return last
	},
	Check: func(r disktest.Reporter, last, dir string) {
		path := filepath.Join(dir, "file")
		text, err := os.ReadFile(path)
		switch got := string(text); {
		case errors.Is(err, fs.ErrNotExist) && last == "":
		case err != nil:
			r.Errorf("acknowledged %q: %v", last, err)
		case got != oldText && got != newText || last == newText && got != newText:
			r.Errorf("acknowledged %q: %q", last, got)
		}
		if err := atomicfile.ReplaceFile(path, writes("the next")); err != nil {
			r.Errorf("it cannot be replaced: %v", err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "the next" {
			r.Errorf("%q, %v", text, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			r.Errorf("left: %v, %v", entries, err)
		}
	},
}

func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// ReplaceFile follows links and keeps the file's mode, leaves the old text where the new
// one is not whole, and writes devices and pipes as they are.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(path, []byte(oldText), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := atomicfile.ReplaceFile(link, func(w io.Writer) error { return errors.Join(writes("half")(w), broken) }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != oldText {
		t.Errorf("%q, %v", text, err)
	}
	if err := atomicfile.ReplaceFile(link, writes(newText)); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != newText {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := atomicfile.ReplaceFile("/dev/full", writes(newText)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := errors.Join(atomicfile.ReplaceFile(fmt.Sprint("/proc/self/fd/", w.Fd()), writes(newText)), w.Close()); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != newText {
		t.Errorf("pipe: %q, %v", text, err)
	}
}
