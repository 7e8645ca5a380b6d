package otherruns_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/otherruns"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

var dir = flag.String("dir", "", "print the entry of runs.json for the run in this folder")

// A run as an entry of runs.json: go test ./internal/analysis/otherruns -run TestEntry -v -dir DIR
func TestEntry(t *testing.T) {
	if *dir == "" {
		return // a tool
	}
	rec, err := result.Load(*dir)
	if err != nil {
		t.Fatal(err)
	}
	env := rec.Run.Environment
	r := report.Analyse(rec, analysis.Options{})
	entry := otherruns.Run{
		Started: rec.Run.Started.UTC().Format("2006-01-02T15:04Z"),
		Machine: fmt.Sprintf("%s CPUs (%s), Linux %s", env["cpu.online"], env["cpu.model"], env["kernel.release"]),
		Source:  "run " + rec.Run.ID + " of " + rec.Run.Tool.Version, Rounds: r.Run.Rounds, Ratios: otherruns.RatiosOf(r),
	}
	text, err := json.MarshalIndent(entry, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(text))
}
