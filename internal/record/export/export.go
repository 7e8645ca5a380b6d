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

// Recordings writes the recordings of all samples of the run in dir; no # EOF follows.
// Every series carries the labels run, contender, underlay, step and round of its sample,
// and node and endpoint of its recording. One file at a time is in memory. A file that
// can't be read, or that clashes with others, is left out and named to fault;
// a sample without one has nothing to export. Errors are those of w and
// scratch.
func Recordings(w io.Writer, dir fs.FS, run *result.Record, scratch Scratch, fault func(result.Fault)) error {
	s := newSpool(scratch)
	labels := map[string]string{"run": clean(run.Run.ID)}
	for _, sample := range run.Samples {
		if sample.Raw == "" {
			continue
		}
		name := path.Join(sample.Raw, sysmon.SampleFile)
		err := s.sample(dir, name, labels, &sample)
		if s.err != nil {
			return fmt.Errorf("merge recordings: %w", s.err)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fault(result.Fault{File: name, Text: err.Error() + "; these recordings are left out"})
		}
	}
	return s.copyTo(w)
}

// sample takes the recordings of one sample.
func (s *spool) sample(dir fs.FS, name string, labels map[string]string, sample *result.Sample) error {
	recs, err := read(dir, name)
	if err != nil {
		return err
	}
	if err := s.claim(recs); err != nil {
		return err
	}
	relabel(recs, labels, sample)
	return sysmon.WriteOpenMetrics(s, recs...)
}

// read is the recordings of a file of the run.
func read(dir fs.FS, name string) ([]*sysmon.Recording, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, result.Cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file") // a pipe would make the reader wait for ever
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, result.Cause(err)
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

// relabel gives the recordings those labels and the labels of their sample,
// which override their own.
func relabel(recs []*sysmon.Recording, labels map[string]string, s *result.Sample) {
	for _, r := range recs {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		maps.Copy(r.Labels, labels)
		maps.Copy(r.Labels, map[string]string{
			"contender": clean(s.Contender), "underlay": clean(s.Underlay),
			"step": clean(s.Step), "round": strconv.Itoa(s.Round),
		})
	}
}

// clean is a name as a label can hold it.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
