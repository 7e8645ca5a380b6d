// Package export merges what the nodes of a run recorded into one OpenMetrics
// text: the files of all samples, each series under its sample's labels, each
// family once. It opens nothing but what the caller's file system holds, and
// has no clock. Next: spool.go sorts the families without holding them.
package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// File is the name of a sample's recordings in its raw folder.
const File = "metrics.om.zst"

// maxText is the most text that one file may unpack to, and maxWindow the
// memory that its compression may ask for.
const (
	maxText   = 256 << 20
	maxWindow = 64 << 20
)

// Scratch is room outside the memory, as an *os.File gives it: as much as the
// recordings take when compressed.
type Scratch interface {
	io.Writer
	io.ReaderAt
}

// Recordings writes the recordings of all samples of rec, which are read from
// dir, the run directory; no # EOF follows. Every series carries the labels
// run, contender, underlay, step and round of its sample, and node and
// endpoint of its recording. One file at a time is in memory. A file that
// can't be read, or that clashes with others, is left out and named to fault;
// a sample without one has nothing to export. Errors are those of w and
// scratch.
func Recordings(w io.Writer, dir fs.FS, rec *result.Record, scratch Scratch, fault func(result.Fault)) error {
	s := newSpool(scratch)
	for _, sample := range rec.Samples {
		if sample.Raw == "" {
			continue
		}
		name := path.Join(sample.Raw, File)
		recs, err := read(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = s.claim(recs)
		}
		if err == nil {
			relabel(recs, rec.Run.ID, &sample)
			err = sysmon.WriteOpenMetrics(s, recs...)
		}
		if s.err != nil {
			return fmt.Errorf("merge recordings: %w", s.err)
		}
		if err != nil {
			fault(result.Fault{File: name, Text: err.Error() + "; these recordings are left out"})
		}
	}
	return s.copyTo(w)
}

// read is the recordings of a file of the run.
func read(dir fs.FS, name string) ([]*sysmon.Recording, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file") // a pipe would make the reader wait for ever
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	return parse(f)
}

// parse reads recordings as runs hold them.
func parse(r io.Reader) ([]*sysmon.Recording, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	text := &io.LimitedReader{R: z, N: maxText + 1}
	recs, err := sysmon.ReadOpenMetrics(text)
	if text.N <= 0 {
		return nil, fmt.Errorf("more than %d MiB of text", maxText>>20)
	}
	return recs, err
}

// relabel gives the recordings the labels of their sample, which override
// their own.
func relabel(recs []*sysmon.Recording, run string, s *result.Sample) {
	for _, r := range recs {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		maps.Copy(r.Labels, map[string]string{
			"run": clean(run), "contender": clean(s.Contender), "underlay": clean(s.Underlay),
			"step": clean(s.Step), "round": strconv.Itoa(s.Round),
		})
	}
}

// clean is a name as a label can hold it.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// cause is err without the file name, which a Fault has anyway.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
