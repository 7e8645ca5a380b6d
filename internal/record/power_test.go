package record

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/testutil/disktest"
)

// Whatever write, sync or rename of a new recording fails, and whatever a power cut
// leaves: the old one is there, or the new one, or as much of it as fitted. The new one
// is there, whole, if nothing else was said.
func TestDiskFails(t *testing.T) {
	s := rewriting(t)
	s.Every(t)
	s.Finds(t, disktest.NoSync, disktest.NoFolderSync, disktest.LateWrite, disktest.InPlace, disktest.EarlyRename)
}

// oldRecording is what was there before.
const oldRecording = "# TYPE old gauge\nold 1 1\n# EOF\n"

func rewriting(t *testing.T) disktest.Suite[bool] {
	rec := recorderOf(t, sysmon.All()[:3], 3)
	times := rec.Part().Times
	summary := &Summary{Begin: times[1], End: times[2]}
	full := 3 + len(rec.Names())
	const name = "x.prom"
	return disktest.Suite[bool]{Do: func(d *disktest.Disk) bool {
		old := func(w io.Writer) error { _, err := io.WriteString(w, oldRecording); return err }
		if atomicfile.Replace(d.Folder(), name, old) != nil {
			return false
		}
		o, err := create(filepath.Join(d.Dir, name), true)
		if err != nil {
			return false
		}
		real := o.target.folder
		defer real.Close()
		o.target.folder = kept{d.Folder()}
		return errors.Join(o.write(rec, summary), o.close()) == nil
	}, Check: func(r disktest.Reporter, whole bool, dir string) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && !whole {
			return // not even the old one was made
		}
		if err != nil {
			r.Fatalf("%v", err)
		}
		if string(text) == oldRecording && !whole {
			return
		}
		f, err := os.Open(path)
		if err != nil {
			r.Fatalf("%v", err)
		}
		defer f.Close()
		got, err := sysmon.ReadOpenMetrics(f)
		switch {
		case err != nil || len(got) != 1:
			r.Errorf("it cannot be read: %d recordings, %v", len(got), err)
		case whole && len(got[0].Families) != full:
			r.Errorf("%d families of %d, and no error", len(got[0].Families), full)
		}
	}}
}

// kept is a folder that stays open: the test's own.
type kept struct{ atomicfile.Folder }

func (kept) Close() error { return nil }
