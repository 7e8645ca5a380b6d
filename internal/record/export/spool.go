package export

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// chunkSize is how much of a family's text is in memory before it goes to the
// scratch file, compressed.
const chunkSize = 256 << 10

// spool takes OpenMetrics texts one after the other and gives one text of
// them, in which each family stands once: what came of a family is kept in
// chunks in the scratch file.
type spool struct {
	scratch  Scratch
	end      int64 // of the scratch file
	zip      *zstd.Encoder
	families []*family // in order of appearance
	byName   map[string]*family
	owners   map[string]owner // of family and sample names
	now      *family
	known    bool   // the descriptions of now are there already
	rest     []byte // the begin of a line
	err      error  // the first of the scratch file
}

// family is one metric's text.
type family struct {
	head   []byte // its descriptions
	text   []byte // not yet in a chunk
	chunks []chunk
}

type chunk struct{ begin, size int64 }

// owner is who a name belongs to.
type owner struct{ family, kind, unit string }

func newSpool(scratch Scratch) *spool {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return &spool{scratch: scratch, zip: zip, byName: map[string]*family{}, owners: map[string]owner{}, err: err}
}

// claim says what keeps the recordings from standing beside those before:
// a name in another meaning, or one of the report's own.
func (s *spool) claim(recs []*sysmon.Recording) error {
	claims := map[string]owner{}
	for _, r := range recs {
		for _, f := range r.Families {
			if strings.HasPrefix(f.Name, "cnibench_") && !strings.HasPrefix(f.Name, "cnibench_recorder_") {
				return fmt.Errorf("%s: the name is the report's own", f.Name)
			}
			own := owner{f.Name, f.Type, f.Unit}
			for _, name := range []string{f.Name, f.Name + "_total"} {
				if f.Type != "counter" && name != f.Name {
					continue
				}
				if before, taken := s.owners[name]; taken && before != own {
					return fmt.Errorf("%s: another file has it as %s of unit %q, this one as %s of unit %q", name, before.kind, before.unit, own.kind, own.unit)
				}
				claims[name] = own
			}
		}
	}
	maps.Copy(s.owners, claims)
	return nil
}

// Write takes a part of what sysmon.WriteOpenMetrics writes.
func (s *spool) Write(p []byte) (int, error) {
	n := len(p)
	for s.err == nil {
		line, after, whole := bytes.Cut(p, []byte("\n"))
		s.rest = append(s.rest, line...)
		if !whole {
			break
		}
		s.line(append(s.rest, '\n'))
		s.rest, p = s.rest[:0], after
	}
	return n, s.err
}

// line takes a whole one, with its end.
func (s *spool) line(line []byte) {
	switch {
	case string(line) == "# EOF\n":
		return
	case bytes.HasPrefix(line, []byte("# TYPE ")):
		name, _, _ := bytes.Cut(line[len("# TYPE "):], []byte(" "))
		s.now, s.known = s.byName[string(name)], true
		if s.now == nil {
			s.now, s.known = &family{}, false
			s.byName[string(name)] = s.now
			s.families = append(s.families, s.now)
		}
	}
	f := s.now
	switch {
	case line[0] != '#':
		f.text = append(f.text, line...)
		if len(f.text) >= chunkSize {
			s.store(f)
		}
	case !s.known:
		f.head = append(f.head, line...)
	}
}

// store moves the family's text to the scratch file.
func (s *spool) store(f *family) {
	zipped := s.zip.EncodeAll(f.text, nil)
	if _, err := s.scratch.Write(zipped); err != nil {
		s.err = err
		return
	}
	f.chunks = append(f.chunks, chunk{s.end, int64(len(zipped))})
	s.end += int64(len(zipped))
	f.text = f.text[:0]
}

// copyTo writes every family.
func (s *spool) copyTo(w io.Writer) error {
	if s.err != nil {
		return s.err
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer unzip.Close()
	var zipped, text []byte
	for _, f := range s.families {
		if _, err := w.Write(f.head); err != nil {
			return err
		}
		for _, c := range f.chunks {
			zipped = append(zipped[:0], make([]byte, c.size)...)
			if _, err := s.scratch.ReadAt(zipped, c.begin); err != nil {
				return fmt.Errorf("read back recordings: %w", err)
			}
			if text, err = unzip.DecodeAll(zipped, text[:0]); err != nil {
				return fmt.Errorf("read back recordings: %w", err)
			}
			if _, err := w.Write(text); err != nil {
				return err
			}
		}
		if _, err := w.Write(f.text); err != nil {
			return err
		}
	}
	return nil
}
