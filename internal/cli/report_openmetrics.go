package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/record/export"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// wholeRun makes opt export the run in dir with its parts: the values of single
// rounds and what the nodes recorded. What can't be read is told to log and
// left out.
func wholeRun(opt *report.Options, dir string, rec *result.Record, log *slog.Logger) {
	runs := []export.Run{{Record: rec}}
	if part, err := run.LoadPart(dir); err != nil {
		log.Warn("left out", "file", run.PartDir, "why", err)
	} else if part != nil {
		runs = append(runs, export.Run{Part: run.PartDir, Record: part})
	}
	for _, run := range runs {
		opt.Samples = append(opt.Samples, report.Samples{Part: run.Part, List: run.Record.Samples})
	}
	opt.Recordings = func(w io.Writer) (err error) {
		for i := range runs {
			root, err := os.OpenRoot(filepath.Join(dir, runs[i].Part))
			if err != nil {
				return fmt.Errorf("run directory: %w", err)
			}
			defer root.Close()
			runs[i].Dir = root.FS()
		}
		scratch, err := os.CreateTemp("", "cnibench-export-*")
		if err != nil {
			return fmt.Errorf("room for sorting the recordings: %w; set TMPDIR to a folder that can be written", err)
		}
		defer func() { err = errors.Join(err, scratch.Close()) }()
		// Without a name nothing is left, by whatever death.
		if err := os.Remove(scratch.Name()); err != nil {
			return err
		}
		return export.Recordings(w, runs, scratch, func(f result.Fault) {
			log.Warn("left out", "file", f.File, "why", f.Text)
		})
	}
}
