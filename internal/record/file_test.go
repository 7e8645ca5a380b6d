package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// smallDisk is a file on a disk with room for so many bytes.
type smallDisk struct {
	bytes []byte
	room  int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n := min(len(p), max(0, d.room-len(d.bytes)))
	d.bytes = append(d.bytes, p[:n]...)
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}
func (d *smallDisk) Truncate(n int64) error {
	d.bytes = d.bytes[:min(int(n), len(d.bytes))]
	return nil
}
func (d *smallDisk) Seek(int64, int) (int64, error) { return int64(len(d.bytes)), nil }
func (d *smallDisk) Sync() error                    { return nil }
func (d *smallDisk) Close() error                   { return nil }

// someRecorder has snapshots of all samplers, as recorded.
func someRecorder(t *testing.T) *sysmon.Recorder {
	t.Helper()
	return recorderOf(t, sysmon.All(), 300)
}

func recorderOf(t *testing.T, samplers []sysmon.Sampler, marks int) *sysmon.Recorder {
	t.Helper()
	root := sysmon.Root{Proc: os.DirFS("../sysmon/testdata/proc"), Sys: fstest.MapFS{}}
	rec, err := sysmon.StartWith(sysmon.Options{Root: root, Labels: map[string]string{"instance": "i"}, Samplers: samplers})
	if err != nil {
		t.Fatal(err)
	}
	for range marks {
		rec.Mark()
	}
	rec.End()
	return rec
}

// TestFullDisk: whatever fits is a file that can be read, and the summary is
// in it first.
func TestFullDisk(t *testing.T) {
	rec := someRecorder(t)
	times := rec.Part().Times
	s := &Summary{Begin: times[1], End: times[2], ExitCode: 3}
	full := 3 + len(rec.Names()) // the summary's and the recorded families
	for _, compressed := range []bool{false, true} {
		write := func(room int) (*smallDisk, error) {
			disk := &smallDisk{room: room}
			o := &output{path: "x", file: disk}
			if compressed {
				var err error
				if o.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
					t.Fatal(err)
				}
			}
			return disk, o.write(rec, s)
		}
		whole, err := write(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for room := 0; room <= len(whole.bytes); room += len(whole.bytes)/20 + 1 {
			disk, err := write(room)
			if err == nil || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d bytes of %d: error %v", room, len(whole.bytes), err)
			}
			if len(disk.bytes) > room {
				t.Fatalf("%d bytes in room for %d", len(disk.bytes), room)
			}
			if strings.Contains(err.Error(), "could not be written") {
				if last > 0 {
					t.Errorf("nothing was kept in %d bytes, %d families in less: %v", room, last, err)
				}
				continue // not even the first part fits
			}
			n := len(read(t, disk.bytes, compressed).Families)
			if n < last || n >= full {
				t.Errorf("%d families in %d bytes, %d in less", n, room, last)
			}
			last = n
		}
		if last == 0 {
			t.Error("nothing was ever kept")
		}
		if n := len(read(t, whole.bytes, compressed).Families); n != full {
			t.Errorf("%d families, want %d", n, full)
		}
	}
}

func read(t *testing.T, b []byte, compressed bool) *sysmon.Recording {
	t.Helper()
	var r io.Reader = bytes.NewReader(b)
	if compressed {
		z, err := zstd.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	recs, err := sysmon.ReadOpenMetrics(r)
	if err != nil || len(recs) != 1 {
		t.Fatalf("%d recordings, %v", len(recs), err)
	}
	return recs[0]
}

// TestCreate: a file is made early, and what is there stays until there is
// something to write.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	if _, err := create(filepath.Join(dir, "no", "file"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	fresh := filepath.Join(dir, "fresh.om.zst")
	o, err := create(fresh, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty file was left: %v", err)
	}
	old := filepath.Join(dir, "old.om")
	if err := os.WriteFile(old, bytes.Repeat([]byte("old"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err = create(old, false); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(old); info.Size() != 3<<20 {
		t.Error("the old file was cut before there was a new one")
	}
	rec := someRecorder(t)
	times := rec.Part().Times
	if err := errors.Join(o.write(rec, &Summary{Begin: times[0], End: times[1]}), o.close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	read(t, b, false)
}

// An old recording stays until the new one is whole, and keeps its mode.
func TestOldRecordingStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.prom")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := create(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	// A kill -9 at this time leaves this.
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("while the new one is written: %q, %v", text, err)
	}
	if err := o.replaceTarget(); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
