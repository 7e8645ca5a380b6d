package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The files of a run directory; docs/format.md describes them.
const (
	runFile     = "run.json"
	samplesFile = "samples.jsonl"
	tornFile    = "samples.torn"
	rawFolder   = "raw"
)

// Files, lines and histograms that are larger than these limits (bytes) were not written
// by cnibench.
const (
	maxRunFile       = 16 << 20
	maxLine          = 4 << 20
	maxTorn          = 64 << 20
	maxHistogramFile = 4 << 20  // encoded
	maxHistogram     = 16 << 20 // in memory; ours take 0.3 MiB
)

// maxMemory is the most bytes of memory that the samples and histograms of one run
// directory may take, whatever its files say. Tests make it smaller.
var maxMemory int64 = 4 << 30

// inMemory is how many times more memory a sample takes than its line.
const inMemory = 8

// budget is what is left of maxMemory.
type budget int64

// take reports whether n bytes more are within the budget.
func (b *budget) take(n int64) bool {
	if n > int64(*b) {
		return false
	}
	*b -= budget(n)
	return true
}

// Kinds of error that Load, Create and Resume return.
var (
	// ErrNoRun: the folder holds no run.
	ErrNoRun = errors.New("not a run directory")
	// ErrVersion: the run was written by a newer cnibench, or by another program.
	ErrVersion = errors.New("unknown version of the run directory")
)

// Load reads the run in dir. A bad line or a bad histogram is left out and becomes a
// Fault, not an error. Load opens nothing outside dir, whatever the files say. Errors:
// ErrNoRun, ErrVersion.
func Load(dir string) (*Record, error) {
	root, err := openRun(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	record, _, err := load(root, dir)
	return record, err
}

func openRun(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w: it does not exist", dir, ErrNoRun)
	case err != nil:
		return nil, fmt.Errorf("run directory: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s: %w: it is no folder", dir, ErrNoRun)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	return root, nil
}

// load also returns the parsed samples file, which Resume needs.
func load(root *os.Root, dir string) (*Record, *parsed, error) {
	run, err := loadRun(root, dir)
	if err != nil {
		return nil, nil, err
	}
	record := &Record{Run: *run}
	p := &parsed{}
	left := budget(maxMemory)
	switch f, err := OpenFile(root, samplesFile); {
	case errors.Is(err, fs.ErrNotExist):
		record.fault(samplesFile, 0, "missing: the run has no samples").Next = "Copy the whole run directory; if the run never began, make it again."
	case err != nil:
		record.fault(samplesFile, 0, "%v; no sample is read", Cause(err)).Next = "Make the file readable."
	default:
		p, err = parseSamples(f, &left)
		f.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, samplesFile), err)
		}
	}
	record.keepFirst(p)
	record.Faults = append(record.Faults, p.bad...)
	record.loadTorn(root)
	record.loadFaults(root)
	read := map[string]bool{}
	for i := range record.Samples {
		record.loadHistograms(root, &record.Samples[i], read, &left)
	}
	return record, p, nil
}

func (r *Record) fault(file string, line int, format string, args ...any) *Fault {
	r.Faults = append(r.Faults, Fault{File: file, Line: line, Text: fmt.Sprintf(format, args...)})
	return &r.Faults[len(r.Faults)-1]
}

func loadRun(root *os.Root, dir string) (*Run, error) {
	f, err := OpenFile(root, runFile)
	if errors.Is(err, fs.ErrNotExist) {
		if entries, err := fs.ReadDir(root.FS(), "."); err == nil && len(entries) == 0 {
			return nil, fmt.Errorf("%s: %w: it is empty, as of a run that ended before its first sample; begin it with --out %s", dir, ErrNoRun, dir)
		}
		return nil, fmt.Errorf("%s: %w: it has no %s", dir, ErrNoRun, runFile)
	}
	file := filepath.Join(dir, runFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	data, err := readAll(f, maxRunFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	run, err := decodeRun(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

// decodeRun reads run.json of any version up to RunSchema.
func decodeRun(data []byte) (*Run, error) {
	if err := checkSchema(data, RunSchema); err != nil {
		return nil, err
	}
	run := &Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, err
	}
	if run.Plan.Rounds < 0 || run.Plan.Rounds > MaxRounds {
		return nil, fmt.Errorf("plan.rounds is %d; a run has 0 to %d rounds: the file is damaged, or cnibench did not write it", run.Plan.Rounds, MaxRounds)
	}
	return run, nil
}

// newerError is the ErrVersion of data that a newer cnibench wrote.
type newerError struct{ found, newest string }

func (e *newerError) Error() string {
	return fmt.Sprintf("%v: it is %.60s and this program reads up to %s; use a newer cnibench", ErrVersion, e.found, e.newest)
}

func (e *newerError) Unwrap() error { return ErrVersion }

// checkSchema compares the version that a JSON object names with the newest
// that this program knows. There is one version so far; from the second on,
// older ones are upgraded here.
func checkSchema(data []byte, newest string) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Schema == newest {
		return nil
	}
	kind, known := path.Split(newest)
	if version, err := strconv.Atoi(strings.TrimPrefix(head.Schema, kind)); err == nil && head.Schema != kind {
		if ours, _ := strconv.Atoi(known); version > ours {
			return &newerError{head.Schema, newest}
		}
	}
	return fmt.Errorf("%w: schema %.60q, want %q", ErrVersion, head.Schema, newest)
}

// keepFirst adds the parsed samples to r. Of several samples with the same key only the
// first counts, because a sealed sample never changes.
func (r *Record) keepFirst(p *parsed) {
	first := make(map[Key]int, len(p.samples))
	for i, s := range p.samples {
		if line, sealed := first[s.Key()]; sealed {
			r.fault(samplesFile, p.lines[i], "%s, step %s, round %d was sealed before, on line %d; that one counts", s.Contender, s.Step, s.Round, line).Next = "Nothing, if a run was resumed twice; else find out which of the lines does not belong here."
			continue
		}
		first[s.Key()] = p.lines[i]
		r.Samples = append(r.Samples, s)
	}
}

// loadFile reads an optional file of the run. It returns nil if the file does not exist.
// If the file cannot be read, loadFile records a fault and returns nil.
func (r *Record) loadFile(root *os.Root, name string, maximum int64) []byte {
	f, err := OpenFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var data []byte
	if err == nil {
		data, err = readAll(f, maximum)
		f.Close()
	}
	if err != nil {
		r.fault(name, 0, "%v", Cause(err))
		return nil
	}
	return data
}

// loadTorn reports the half-written lines that Resume moved aside.
func (r *Record) loadTorn(root *os.Root) {
	for i := range bytes.Count(r.loadFile(root, tornFile, maxTorn), []byte("\n")) {
		r.fault(tornFile, i+1, "a sample that was half written when the run was killed; it does not count, and the step was measured again on resume").Next = "Nothing; it was measured again."
	}
}

// loadHistograms reads the histograms of a valid sample. read holds the files that were
// read before; a file must not belong to two samples.
func (r *Record) loadHistograms(root *os.Root, s *Sample, read map[string]bool, left *budget) {
	if s.Verdict != Valid {
		return
	}
	clocks := make([]string, 0, len(s.HistogramFiles))
	for clock := range s.HistogramFiles {
		clocks = append(clocks, clock)
	}
	sort.Strings(clocks)
	for _, clock := range clocks {
		name := path.Join(s.Raw, s.HistogramFiles[clock])
		var h *hdrhistogram.Histogram
		err := errReadBefore
		if !read[name] {
			read[name] = true
			h, err = loadHistogram(root, name)
		}
		if err == nil && !left.take(int64(h.ByteSize())) {
			err = errBudget
		}
		if err != nil {
			r.fault(name, 0, "%v; the sample of %s, step %s, round %d stays without its %s histogram", Cause(err), s.Contender, s.Step, s.Round, clock)
			continue
		}
		if s.Histograms == nil {
			s.Histograms = make(map[string]*hdrhistogram.Histogram, len(clocks))
		}
		s.Histograms[clock] = h
	}
}

var (
	errReadBefore = errors.New("the file belongs to another sample, too")
	errBudget     = errors.New("the run directory would take too much memory")
)

func loadHistogram(root *os.Root, name string) (*hdrhistogram.Histogram, error) {
	f, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseHistogram(f)
}

// parseHistogram reads the base64 text of HdrHistogram's compressed V2 encoding.
func parseHistogram(r io.Reader) (*hdrhistogram.Histogram, error) {
	data, err := readAll(r, maxHistogramFile)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimSpace(data)
	if err := checkInflated(data); err != nil {
		return nil, err
	}
	h, err := hdrhistogram.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("not a histogram: %w", err)
	}
	if size := h.ByteSize(); size > maxHistogram {
		return nil, fmt.Errorf("histogram of %d bytes in memory, over the limit of %d", size, maxHistogram)
	}
	return h, nil
}

// checkInflated returns an error if the compressed histogram is larger than maxHistogram
// when it is inflated. Decode would inflate it without a limit.
func checkInflated(data []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil || len(raw) < 8 {
		return errors.New("not a histogram: not in base64")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:])) // after the cookie and the length
	if err != nil {
		return fmt.Errorf("not a histogram: %w", err)
	}
	defer z.Close()
	if n, _ := io.CopyN(io.Discard, z, maxHistogram+1); n > maxHistogram { // other errors are left to Decode
		return fmt.Errorf("histogram larger than %d bytes when inflated", maxHistogram)
	}
	return nil
}

// OpenFile opens a regular file below root for reading. Anything else, such as a
// pipe, which could block the reader for ever, is an error.
func OpenFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Cause returns err without the file name, which a Fault has a field for.
func Cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return data, err
}
