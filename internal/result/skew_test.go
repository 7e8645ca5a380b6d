package result_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// A run that a released version began goes on with this one: what was sealed stays as
// it is, byte by byte, and what comes names this version.
func TestSpecimensGoOn(t *testing.T) {
	dirs, err := filepath.Glob("testdata/v*")
	if err != nil {
		t.Fatal(err)
	}
	for _, specimen := range dirs {
		if filepath.Ext(specimen) == ".golden" {
			continue
		}
		t.Run(filepath.Base(specimen), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(specimen)); err != nil {
				t.Fatal(err)
			}
			before := load(t, dir)
			sealed := read(t, dir, "samples.jsonl")
			s, r, err := result.Resume(dir)
			if err != nil {
				t.Fatal(err)
			}
			now := result.Tool{Name: "cnibench", Version: "99.0.0"}
			s.SetTool(now, r.Run.Tool)
			seal(t, s, aSample("canal", "dts", 77))
			s.Close()
			if after := read(t, dir, "samples.jsonl"); !strings.HasPrefix(after, sealed) {
				t.Errorf("what was sealed is changed:\n%s", after)
			}
			after := load(t, dir)
			if len(after.Samples) != len(before.Samples)+1 || len(after.Faults) != len(before.Faults) {
				t.Errorf("%d samples of %d, faults %v, before %v", len(after.Samples), len(before.Samples)+1, after.Faults, before.Faults)
			}
			if last := after.Samples[len(after.Samples)-1]; !strings.Contains(last.Tool, "99.0.0") {
				t.Errorf("the new sample is of %q", last.Tool)
			}
		})
	}
}

// A run of a version to come is refused, and stays as it is.
func TestRunsOfANewerVersion(t *testing.T) {
	for _, file := range []string{"run.json", "samples.jsonl"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("testdata/v1")); err != nil {
				t.Fatal(err)
			}
			newer := strings.NewReplacer(result.RunSchema, "cnibench/run/99", result.SampleSchema, "cnibench/sample/99").Replace(read(t, dir, file))
			put(t, dir, file, newer)
			if _, _, err := result.Resume(dir); !errors.Is(err, result.ErrVersion) || !strings.Contains(err.Error(), "use a newer cnibench") {
				t.Errorf("resume: %v", err)
			}
			if _, err := result.Load(dir); !errors.Is(err, result.ErrVersion) {
				t.Errorf("load: %v", err)
			}
			if read(t, dir, file) != newer {
				t.Error("it was changed")
			}
		})
	}
}
