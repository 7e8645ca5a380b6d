package result

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/testutil/disktest"
)

// acknowledged is what the store returned no error for.
type acknowledged struct {
	created, report bool
	sealed          map[int]bool // rounds
}

const powerRounds = 3

func powerRun() *Run {
	return &Run{ID: "power", Started: time.Unix(0, 0).UTC(), Plan: Plan{Rounds: powerRounds}}
}

func powerSample(round int) *Sample {
	h := hdrhistogram.New(1, 1000, 2)
	_ = h.RecordValue(int64(round))
	return &Sample{Contender: "host", Step: "dts", Round: round, Verdict: Valid, Metrics: map[string]float64{"goodput": float64(round)},
		Histograms: map[string]*hdrhistogram.Histogram{"latency": h}}
}

// powerOutput is what a program of that round has said, which a raw file holds.
func powerOutput(round int) string { return fmt.Sprintf("the output of round %d", round) }

func sealRounds(s *Store, did *acknowledged) {
	for round := 1; round <= powerRounds; round++ {
		if !did.sealed[round] {
			did.sealed[round] = sealWhole(s, round) == nil
		}
	}
}

// sealWhole seals the sample of a round with a raw file.
func sealWhole(s *Store, round int) error {
	sample := powerSample(round)
	f, err := s.Raw(sample).Create("stdout")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, powerOutput(round))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.Seal(sample)
}

// Whatever write, sync or rename fails, and whatever a power cut leaves: what
// was sealed is read, nothing is read wrong, and the run can go on.
func TestDiskFails(t *testing.T) {
	creation.Every(t)
	creation.Finds(t, disktest.NoSync, disktest.NoFolderSync, disktest.LateWrite, disktest.InPlace, disktest.EarlyRename, disktest.Rewrite)
}

var creation = disktest.Suite[acknowledged]{
	Do: func(d *disktest.Disk) acknowledged {
		did := acknowledged{sealed: map[int]bool{}}
		s, err := create(d.Dir, powerRun(), func(*os.Root) atomicfile.Folder { return d.Folder() })
		if err != nil {
			return did
		}
		defer s.Close()
		did.created = true
		sealRounds(s, &did)
		did.report = s.WriteFile("report.txt", func(w io.Writer) error { _, err := fmt.Fprintln(w, "whole"); return err }) == nil
		return did
	},
	Check: checkRun,
}

// The same for a run that goes on after its last line was torn.
func TestDiskFailsOnResume(t *testing.T) {
	resumption.Every(t)
	resumption.Finds(t, disktest.NoSync, disktest.LateWrite, disktest.Rewrite)
}

var resumption = disktest.Suite[acknowledged]{
	Do: func(d *disktest.Disk) acknowledged {
		did := acknowledged{sealed: map[int]bool{}}
		layer := func(*os.Root) atomicfile.Folder { return d.Folder() }
		s, err := create(d.Dir, powerRun(), layer)
		if err != nil {
			return did
		}
		did.created = true
		did.sealed[1] = sealWhole(s, 1) == nil
		if did.sealed[1] {
			_, _ = s.samples.WriteAt([]byte(`{"contender":"host","ro`), s.end)
		}
		s.Close()
		s, _, err = resume(d.Dir, layer)
		if err != nil {
			return did
		}
		defer s.Close()
		sealRounds(s, &did)
		return did
	},
	Check: checkRun,
}

// What import makes, from its first file to its end: many samples at once, the faults of
// their files, a table of these.
func TestDiskFailsOnImport(t *testing.T) {
	importing.Every(t)
	importing.Finds(t, disktest.NoSync, disktest.NoFolderSync, disktest.LateWrite, disktest.InPlace, disktest.EarlyRename)
}

var importing = disktest.Suite[acknowledged]{
	Do: func(d *disktest.Disk) acknowledged {
		did := acknowledged{sealed: map[int]bool{}}
		s, err := create(d.Dir, powerRun(), func(*os.Root) atomicfile.Folder { return d.Folder() })
		if err != nil {
			return did
		}
		defer s.Close()
		did.created = true
		if s.WriteFaults([]Fault{{File: "x.json", Line: 1, Text: "cut"}}) != nil {
			return did
		}
		var all []*Sample
		for round := 1; round <= powerRounds; round++ {
			sample := powerSample(round)
			f, err := s.Raw(sample).Create("stdout")
			if err != nil {
				return did
			}
			_, err = io.WriteString(f, powerOutput(round))
			if err := errors.Join(err, f.Close()); err != nil {
				return did
			}
			all = append(all, sample)
		}
		if s.SealAll(all) == nil {
			did.sealed = map[int]bool{1: true, 2: true, 3: true}
		}
		did.report = s.WriteFile("report.txt", func(w io.Writer) error { _, err := fmt.Fprintln(w, "whole"); return err }) == nil
		return did
	},
	Check: checkRun,
}

// checkRun checks what is in the folder against what was acknowledged, and
// brings the run to its end there.
func checkRun(t disktest.Reporter, did acknowledged, dir string) {
	t.Helper()
	s, rec, err := Resume(dir)
	switch {
	case err != nil && did.created:
		t.Fatalf("the run cannot go on: %v", err)
	case err != nil:
		if s, err = Create(dir, powerRun()); err != nil {
			t.Fatalf("the folder can be neither resumed nor used again: %v", err)
		}
		rec = &Record{}
	}
	defer s.Close()
	have := map[int]bool{}
	for _, sample := range rec.Samples {
		have[sample.Round] = true
		if sample.Metrics["goodput"] != float64(sample.Round) || sample.Histograms["latency"] == nil || sample.Histograms["latency"].Max() != int64(sample.Round) {
			t.Errorf("round %d is read wrong: %+v", sample.Round, sample)
		}
		if text, err := os.ReadFile(filepath.Join(dir, sample.Raw, "stdout")); did.sealed[sample.Round] && (err != nil || string(text) != powerOutput(sample.Round)) {
			t.Errorf("round %d was sealed, its raw file has %q, %v", sample.Round, text, err)
		}
	}
	for round, sealed := range did.sealed {
		if sealed && !have[round] {
			t.Errorf("round %d was sealed and is lost", round)
		}
	}
	if text, err := os.ReadFile(dir + "/report.txt"); did.report && err != nil || err == nil && string(text) != "whole\n" {
		t.Errorf("report %q, %v", text, err)
	}
	left := acknowledged{sealed: have}
	sealRounds(s, &left)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if rec, err = Load(dir); err != nil || len(rec.Samples) != powerRounds {
		t.Fatalf("after going on: %d samples, %v", len(rec.Samples), err)
	}
	for _, f := range rec.Faults {
		if f.File != tornFile && f.File != "x.json" {
			t.Errorf("after going on: %+v", f)
		}
	}
}
