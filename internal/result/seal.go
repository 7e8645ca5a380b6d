package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/disk"
	"github.com/cnibench/cnibench/internal/unit"
)

// NotFinite is the code of the reason for a value that was no number: it is
// left out, because JSON and statistics have no place for it.
const NotFinite = "not_a_number"

// Seal makes the sample part of the run: its histograms, then its line, are
// on the disk when Seal returns. It fills in s.Schema, s.Raw and
// s.HistogramFiles; a metric that is NaN or infinite is dropped, and the
// sample is then invalid with the reason NotFinite. After an error the sample
// is not sealed and may be sealed again. Errors: ErrSealed, ErrNoSpace.
func (s *Store) Seal(sample *Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sample.Key()
	what := fmt.Sprintf("seal sample of %s, step %s, round %d", sample.Contender, sample.Step, sample.Round)
	if s.broken != nil {
		return fmt.Errorf("%s: %w", what, s.broken)
	}
	if s.sealed[key] {
		return fmt.Errorf("%s: %w", what, ErrSealed)
	}
	line, err := s.line(sample)
	if err == nil {
		err = s.appendLines(line)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.sealed[key] = true
	return nil
}

// SealAll seals samples that are known already, such as imported ones, with
// one write: after an error none of them is sealed. Otherwise as Seal.
func (s *Store) SealAll(samples []*Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return fmt.Errorf("seal %d samples: %w", len(samples), s.broken)
	}
	keys := make(map[Key]bool, len(samples))
	var lines []byte
	for _, sample := range samples {
		key := sample.Key()
		what := fmt.Sprintf("seal sample of %s, step %s, round %d", sample.Contender, sample.Step, sample.Round)
		if s.sealed[key] || keys[key] {
			return fmt.Errorf("%s: %w", what, ErrSealed)
		}
		line, err := s.line(sample)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		keys[key] = true
		lines = append(lines, line...)
	}
	if err := s.appendLines(lines); err != nil {
		return fmt.Errorf("seal %d samples: %w", len(samples), err)
	}
	maps.Copy(s.sealed, keys)
	return nil
}

// line is the sample's line, its histograms on the disk.
func (s *Store) line(sample *Sample) ([]byte, error) {
	sample.Schema = SampleSchema
	if s.tool != "" {
		sample.Tool = s.tool
	}
	dropNotFinite(sample)
	if err := s.writeHistograms(sample); err != nil {
		return nil, err
	}
	line, err := json.Marshal(sample)
	if err != nil {
		return nil, err
	}
	line = append(line, '\n')
	if len(line) > maxLine {
		return nil, fmt.Errorf("line of %d bytes, over the limit of %d", len(line), maxLine)
	}
	return line, nil
}

// dropNotFinite takes out of the sample what JSON can't carry.
func dropNotFinite(s *Sample) {
	metrics := make(map[string]float64, len(s.Metrics))
	var dropped []string
	for name, v := range s.Metrics {
		if finite(v) {
			metrics[name] = v
		} else {
			dropped = append(dropped, name)
		}
	}
	s.Metrics = metrics
	for i := range s.Spoiled {
		maps.DeleteFunc(s.Spoiled[i].Metrics, func(_ string, v float64) bool { return !finite(v) })
	}
	if !finite(float64(s.Elapsed)) {
		s.Elapsed = unit.Seconds(0)
		dropped = append(dropped, "elapsed")
	}
	sort.Strings(dropped)
	for _, name := range dropped {
		s.Verdict = Invalid
		s.Reasons = append(s.Reasons, Reason{Code: NotFinite, Text: name + " came out as no finite number and is left out"})
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// writeHistograms writes one file for each clock into the raw folder, whose names the
// disk has then.
func (s *Store) writeHistograms(sample *Sample) error {
	sample.Raw, sample.HistogramFiles = "", nil
	if len(sample.Histograms) == 0 && !s.fresh[sample.Key()] {
		return nil
	}
	folder, err := s.rawFolder(sample.Key())
	if err != nil {
		return err
	}
	sample.Raw = folder
	files := make(map[string]string, len(sample.Histograms))
	for clock, h := range sample.Histograms {
		data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return fmt.Errorf("%s histogram: %w", clock, err)
		}
		name := component(clock) + ".hdr"
		if err := disk.Write(s.files, path.Join(folder, name), func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		}); err != nil {
			return spaceError(err)
		}
		files[clock] = name
	}
	if len(files) > 0 {
		sample.HistogramFiles = files
	}
	// Every folder on the way may be new.
	for d := folder; ; d = path.Dir(d) {
		if err := disk.Sync(s.files, d); err != nil {
			return spaceError(err)
		}
		if d == "." {
			return nil
		}
	}
}

// appendLines writes whole lines behind the last sealed one. After a failure
// the file ends there again, so that nothing half written stays.
func (s *Store) appendLines(lines []byte) error {
	_, err := s.samples.WriteAt(lines, s.end)
	if err == nil {
		err = s.samples.Sync()
	}
	if err != nil {
		if e := s.samples.Truncate(s.end); e != nil {
			s.broken = fmt.Errorf("%s could not be mended after an earlier error: %w", samplesFile, e)
		}
		return spaceError(err)
	}
	s.end += int64(len(lines))
	return nil
}

// Raw is the folder for the raw files of a sample that is being measured:
// raw/CONTENDER/ROUND/STEP in the run directory, made with its first file.
// What an earlier process, killed before it sealed the sample, left there is
// taken away.
func (s *Store) Raw(sample *Sample) *Folder {
	return &Folder{store: s, key: sample.Key()}
}

// Folder takes the raw files of one sample.
type Folder struct {
	store *Store
	key   Key
}

// Create makes a file; whatever its name, it lies in the folder. A name can
// be used once. Close waits until the disk has the content. Errors: fs.ErrExist,
// ErrSealed, ErrNoSpace.
func (f *Folder) Create(name string) (io.WriteCloser, error) {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed[f.key] {
		return nil, fmt.Errorf("raw file %s of %s, step %s, round %d: %w", name, f.key.Contender, f.key.Step, f.key.Round, ErrSealed)
	}
	folder, err := s.rawFolder(f.key)
	if err != nil {
		return nil, err
	}
	file, err := s.files.OpenFile(path.Join(folder, component(name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, spaceError(err)
	}
	return rawFile{file}, nil
}

// rawFile is what Create makes.
type rawFile struct{ disk.File }

func (f rawFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, spaceError(err)
}

func (f rawFile) Close() error { return spaceError(errors.Join(f.Sync(), f.File.Close())) }

// rawFolder is a sample's raw folder, made anew when this process needs it
// first.
func (s *Store) rawFolder(k Key) (string, error) {
	folder := rawPath(k)
	if s.fresh[k] {
		return folder, nil
	}
	if err := s.files.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := s.files.MkdirAll(folder, 0o755); err != nil {
		return "", spaceError(err)
	}
	s.fresh[k] = true
	return folder, nil
}
