package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/cnibench/cnibench/internal/record/export"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// wholeRun makes opt export the run in dir: the values of single rounds and what the nodes
// recorded. What can't be read is told to log and left out.
func wholeRun(opt *report.Options, dir string, rec *result.Record, log *slog.Logger) {
	opt.Samples = rec.Samples
	opt.Recordings = func(w io.Writer) (err error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		defer root.Close()
		scratch, err := os.CreateTemp("", "cnibench-export-*")
		if err != nil {
			return fmt.Errorf("room for sorting the recordings: %w; set TMPDIR to a folder that can be written", err)
		}
		defer func() { err = errors.Join(err, scratch.Close()) }()
		// Without a name nothing is left, by whatever death.
		if err := os.Remove(scratch.Name()); err != nil {
			return err
		}
		return export.Recordings(w, root.FS(), rec, scratch, func(f result.Fault) {
			log.Warn("left out", "file", f.File, "why", f.Text)
		})
	}
}
