package result_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// A kill can cut the last line anywhere: what was sealed before is there, the
// rest is kept aside, and the next sample is a line of its own.
func TestResumeAfterACutAtEveryByte(t *testing.T) {
	_, text := lines(t)
	sealedBefore := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	for cut := sealedBefore; cut <= len(text); cut++ {
		dir, s := create(t)
		s.Close()
		put(t, dir, "samples.jsonl", text[:cut])
		want, torn := 2, 1
		switch cut {
		case sealedBefore:
			torn = 0
		case len(text) - 1, len(text): // only the newline is missing, or nothing
			want, torn = 3, 0
		}
		s, r, err := result.Resume(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(r.Samples) != want || len(r.Faults) != torn {
			t.Fatalf("cut at %d: %d samples, faults %v", cut, len(r.Samples), r.Faults)
		}
		seal(t, s, aSample("canal", "dts", 1))
		s.Close()
		r = load(t, dir)
		if len(r.Samples) != want+1 || r.Samples[want].Contender != "canal" {
			t.Fatalf("cut at %d, after the next sample: %d samples, faults %v", cut, len(r.Samples), r.Faults)
		}
		if torn == 0 {
			if len(r.Faults) > 0 {
				t.Fatalf("cut at %d: %v", cut, r.Faults)
			}
			continue
		}
		if kept := read(t, dir, "samples.torn"); kept != text[sealedBefore:cut]+"\n" {
			t.Fatalf("cut at %d: kept aside: %q", cut, kept)
		}
		if len(r.Faults) != 1 || r.Faults[0].File != "samples.torn" || r.Faults[0].Line != 1 {
			t.Fatalf("cut at %d: %v", cut, r.Faults)
		}
	}
}

func TestResumeKeepsEveryTornLine(t *testing.T) {
	dir, s := create(t)
	seal(t, s, aSample("host", "dts", 1))
	s.Close()
	for range 3 {
		put(t, dir, "samples.jsonl", read(t, dir, "samples.jsonl")+`{"schema":"cnibe`)
		s, _, err := result.Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if r := load(t, dir); len(r.Samples) != 1 || len(r.Faults) != 3 {
		t.Error(len(r.Samples), r.Faults)
	}
}

// Lines behind a bad one may be good samples: they are not thrown away.
func TestResumeRefusesABadLineInTheMiddle(t *testing.T) {
	dir, text := lines(t)
	spoilt := strings.Replace(text, `"contender":"flannel"`, `"contender":`, 1)
	put(t, dir, "samples.jsonl", spoilt)
	_, _, err := result.Resume(dir)
	if !errors.Is(err, result.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Join(dir, "samples.jsonl")+":2: ") {
		t.Error(err)
	}
	if read(t, dir, "samples.jsonl") != spoilt {
		t.Error("the file was changed")
	}
	put(t, dir, "samples.jsonl", text)
	s, r, err := result.Resume(dir)
	if err != nil || len(r.Samples) != 3 {
		t.Fatal("after the repair:", err)
	}
	s.Close()
}

func TestResumeARunWithoutSamples(t *testing.T) {
	dir, s := create(t)
	s.Close()
	if err := os.Remove(filepath.Join(dir, "samples.jsonl")); err != nil {
		t.Fatal(err)
	}
	if r := load(t, dir); len(r.Faults) != 1 || r.Faults[0].File != "samples.jsonl" {
		t.Error(r.Faults)
	}
	s, r, err := result.Resume(dir)
	if err != nil || len(r.Samples) != 0 || len(r.Faults) != 0 {
		t.Fatal(r, err)
	}
	seal(t, s, aSample("host", "dts", 1))
	s.Close()
}

// The samples of a resumption with another version name that version.
func TestResumeByAnotherVersion(t *testing.T) {
	dir, s := create(t)
	began := load(t, dir).Run.Tool
	seal(t, s, aSample("host", "dts", 1))
	s.SetTool(began, began)
	seal(t, s, aSample("host", "dts", 2))
	s.SetTool(result.Tool{Version: "9.9", Commit: "abc"}, began)
	seal(t, s, aSample("host", "dts", 3))
	s.Close()
	r := load(t, dir)
	if r.Samples[0].Tool != "" || r.Samples[1].Tool != "" || r.Samples[2].Tool != "9.9 (abc)" {
		t.Errorf("%q, %q, %q", r.Samples[0].Tool, r.Samples[1].Tool, r.Samples[2].Tool)
	}
	if got := r.Run.Tools(r.Samples); len(got) != 2 || got[0] != began.String() || got[1] != "9.9 (abc)" {
		t.Errorf("%q", got)
	}
}
