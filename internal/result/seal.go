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

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/unit"
)

// NotFinite is the reason code of a value that is NaN or infinite. The value is left out,
// because JSON cannot hold it and statistics cannot use it.
const NotFinite = "not_a_number"

// Seal makes the sample part of the run: its histograms, then its line, are
// on the disk when Seal returns. It fills in s.Schema, s.Raw and
// s.HistogramFiles; a metric that is NaN or infinite is dropped, and the
// sample is then invalid with the reason NotFinite. After an error the sample
// is not sealed and may be sealed again. Errors: ErrSealed, ErrNoSpace.
func (s *Store) Seal(sample *Sample) error { return s.SealAll([]*Sample{sample}) }

// SealAll seals samples as Seal does, but writes all lines at once: after an error none of
// the samples is sealed.
func (s *Store) SealAll(samples []*Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return fmt.Errorf("seal %s: %w", describe(samples...), s.broken)
	}
	keys := make(map[Key]bool, len(samples))
	var lines []byte
	for _, sample := range samples {
		key := sample.Key()
		if s.sealed[key] || keys[key] {
			return fmt.Errorf("seal %s: %w", describe(sample), ErrSealed)
		}
		line, err := s.line(sample)
		if err != nil {
			return fmt.Errorf("seal %s: %w", describe(sample), err)
		}
		keys[key] = true
		lines = append(lines, line...)
	}
	if err := s.appendLines(lines); err != nil {
		return fmt.Errorf("seal %s: %w", describe(samples...), err)
	}
	maps.Copy(s.sealed, keys)
	return nil
}

// describe names the samples in error messages.
func describe(samples ...*Sample) string {
	if len(samples) != 1 {
		return fmt.Sprintf("%d samples", len(samples))
	}
	return fmt.Sprintf("sample of %s, step %s, round %d", samples[0].Contender, samples[0].Step, samples[0].Round)
}

// line writes the sample's histograms to the disk, and returns its line.
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

// dropNotFinite removes values from the sample that JSON cannot hold.
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
	for i := range s.DroppedClocks {
		maps.DeleteFunc(s.DroppedClocks[i].Metrics, func(_ string, v float64) bool { return !finite(v) })
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

// writeHistograms writes one file for each clock into the raw folder. When it returns, the
// files and the folders that contain them are on the disk.
func (s *Store) writeHistograms(sample *Sample) error {
	sample.Raw, sample.HistogramFiles = "", nil
	if len(sample.Histograms) == 0 && !s.made[sample.Key()] {
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
		if err := atomicfile.Write(s.files, path.Join(folder, name), func(w io.Writer) error {
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
	// Every folder up to the run directory may be new.
	for d := folder; ; d = path.Dir(d) {
		if err := atomicfile.Sync(s.files, d); err != nil {
			return spaceError(err)
		}
		if d == "." {
			return nil
		}
	}
}

// appendLines writes whole lines after the last sealed line. After a failure it truncates
// the file to the last sealed line, so that no half-written line stays.
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

// Raw returns the folder for the raw files of a sample that is being measured:
// raw/CONTENDER/ROUND/STEP in the run directory. The folder is made with its first file.
// Files that a killed process left there, before it sealed the sample, are removed then.
func (s *Store) Raw(sample *Sample) *Folder {
	return &Folder{store: s, key: sample.Key()}
}

// Folder takes the raw files of one sample.
type Folder struct {
	store *Store
	key   Key
}

// Create makes a file in the folder; characters of name that could lead elsewhere are
// escaped. A name can be used once. Close of the file waits until the disk has the content.
// Errors: fs.ErrExist, ErrSealed, ErrNoSpace.
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

// rawFile is a file that Create made.
type rawFile struct{ atomicfile.File }

func (f rawFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, spaceError(err)
}

func (f rawFile) Close() error { return spaceError(errors.Join(f.Sync(), f.File.Close())) }

// rawFolder returns the path of a sample's raw folder. On the first call of this process
// for the sample it makes the folder, and removes an older one.
func (s *Store) rawFolder(k Key) (string, error) {
	folder := rawPath(k)
	if s.made[k] {
		return folder, nil
	}
	if err := s.files.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := s.files.MkdirAll(folder, 0o755); err != nil {
		return "", spaceError(err)
	}
	s.made[k] = true
	return folder, nil
}
