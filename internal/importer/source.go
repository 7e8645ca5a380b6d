package importer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/result"
)

// Limits of what is read. Larger files are no results of a benchmark, or take too much
// memory. The largest published files are 0.4 MB of iperf3 with eight
// streams and 4.2 MB of statexec.
const (
	maxFile      = 8 << 20
	maxRecording = 64 << 20 // of statexec
	maxEntries   = 100_000  // in one folder
	maxFaults    = 10_000   // kept
	maxText      = 300      // bytes of somebody else's text in a fault
)

// maxMemory is what an import may keep in memory, whatever its files are by
// themselves. Tests make it smaller.
var maxMemory int64 = 2 << 30

// Estimated memory for one folder entry, and for one file's samples, bytes.
const (
	folderCost = 16 << 10
	fileCost   = 4 << 10
)

// source is the folder that is read. Its methods can be called from several
// goroutines.
type source struct {
	root  *os.Root
	mu    sync.Mutex
	kept  int64  // bytes in memory, up to maxMemory
	grown string // the first file for which maxMemory did not suffice, or ""
	fault []result.Fault
	files []sourceFile // that were read
}

// sourceFile is a file that was read.
type sourceFile struct {
	File   string `json:"file"` // relative to the imported folder, with slashes
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// writeFiles writes the files that were read, sorted by name, one JSON object a line.
func (s *source) writeFiles(w io.Writer) error {
	slices.SortFunc(s.files, func(a, b sourceFile) int { return cmp.Compare(a.File, b.File) })
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, f := range s.files {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

func openSource(dir string) (*source, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("import %s: it does not exist; get the results first (git clone, or unpack them), then give the folder that holds them", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("import %s: it is no folder; give the folder that holds the results", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return &source{root: root}, nil
}

func (s *source) close() { s.root.Close() }

// faultf records what is wrong with a file. Line 0 is the whole file.
func (s *source) faultf(file string, line int, text string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f := (result.Fault{File: clean(file), Line: line, Text: clean(fmt.Sprintf(text, args...)), Code: FaultCode}); {
	case len(s.fault) < maxFaults:
		s.fault = append(s.fault, f)
	case len(s.fault) == maxFaults:
		s.fault = append(s.fault, result.Fault{File: ".", Text: fmt.Sprintf("more than %d faults; the others are not listed", maxFaults), Code: FaultCode})
	}
}

// sortedFaults returns the faults sorted by file, line and text, without duplicates.
func (s *source) sortedFaults() []result.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.fault)
	slices.SortFunc(list, func(a, b result.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(list)
}

// keep reserves memory for a file and reports whether maxMemory allows it. The first
// file that does not fit becomes a fault.
func (s *source) keep(name string, bytes int64) bool {
	s.mu.Lock()
	ok := bytes <= maxMemory-s.kept
	first := !ok && s.grown == ""
	if ok {
		s.kept += bytes
	} else if first {
		s.grown = name
	}
	s.mu.Unlock()
	if first {
		s.faultf(name, 0, "%s", outgrown())
	}
	return ok
}

func outgrown() string {
	return fmt.Sprintf("with it the import would take more than %d MiB of memory: this file and others are not read; import a part of the folder", maxMemory>>20)
}

// list returns the names of a folder's folders and files, sorted. Everything else (links,
// pipes, devices) becomes a fault and is not returned.
func (s *source) list(dir string) (folders, files []string) {
	f, err := s.root.Open(filepath.FromSlash(dir))
	if err != nil {
		s.faultf(dir, 0, "not read: %v", result.Cause(err))
		return nil, nil
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.faultf(dir, 0, "not read to its end: %v", result.Cause(err))
	}
	if len(entries) > maxEntries {
		s.faultf(dir, 0, "more than %d entries; the others are not read", maxEntries)
		entries = entries[:maxEntries]
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		cost := int64(fileCost)
		if e.IsDir() {
			cost = folderCost
		}
		if !s.keep(name, cost) {
			break
		}
		switch t := e.Type(); {
		case t.IsDir():
			folders = append(folders, e.Name())
		case t.IsRegular():
			files = append(files, e.Name())
		case t&fs.ModeSymlink != 0:
			s.faultf(name, 0, "a symbolic link; it is not followed")
		default:
			s.faultf(name, 0, "neither a file nor a folder; it is not read")
		}
	}
	slices.Sort(folders)
	slices.Sort(files)
	return folders, files
}

// read returns the content of a regular file. If the file cannot be read, read records a
// fault and returns nil.
func (s *source) read(name string) []byte {
	data, err := s.readAll(name)
	if err != nil {
		s.faultf(name, 0, "not read: %v", result.Cause(err))
		return nil
	}
	sum := sha256.Sum256(data)
	s.mu.Lock()
	s.files = append(s.files, sourceFile{clean(name), len(data), hex.EncodeToString(sum[:])})
	s.mu.Unlock()
	return data
}

func (s *source) readAll(name string) ([]byte, error) {
	f, err := result.OpenFile(s.root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := int64(maxFile)
	if isRecording(name) {
		limit = maxRecording
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > limit:
		return nil, fmt.Errorf("%d bytes, over the limit of %d", info.Size(), limit)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return data.Bytes(), nil
}

// isRecording is whether a file of that name can be one of statexec.
func isRecording(name string) bool {
	return slices.Contains([]string{".prom", ".om", ".txt"}, path.Ext(name))
}

// clean makes somebody else's text fit to be shown: one line of printable
// UTF-8 that is not too long. Markup stays; reports escape it.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
	if len(text) > maxText {
		cut := maxText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
