package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is a file of an archive: its path there, and either where it is here or
// its text.
type file struct {
	path   string
	source string
	text   []byte
	mode   int64
}

// archives writes an archive for each target.
func (r *release) archives() error {
	for _, t := range r.targets {
		files := []file{{path: "cnibench", source: r.program(t), mode: 0o755}}
		for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
			files = append(files, file{path: name, source: filepath.Join(r.root, name), mode: 0o644})
		}
		for _, pattern := range []string{"man/*.1", "completions/*"} {
			found, err := filepath.Glob(filepath.Join(r.work, pattern))
			if err != nil {
				return err
			}
			for _, f := range found {
				files = append(files, file{path: filepath.Dir(pattern) + "/" + filepath.Base(f), source: f, mode: 0o644})
			}
		}
		if err := r.pack(r.archive(t), files); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

// archive is the name of the target's archive.
func (r *release) archive(t target) string { return r.name(t.String() + ".tar.gz") }

// pack writes an archive of the files in their order, all of the commit's time.
func (r *release) pack(name string, files []file) error {
	out, err := os.Create(filepath.Join(r.dist, name))
	if err != nil {
		return err
	}
	return errors.Join(pack(out, files, r.time), out.Close())
}

func pack(w io.Writer, files []file, at time.Time) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, f := range files {
		text := f.text
		if f.source != "" {
			if text, err = os.ReadFile(f.source); err != nil {
				return err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(text)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

// sum is the SHA-256 of a file of the release.
func (r *release) sum(name string) (string, error) {
	f, err := os.Open(filepath.Join(r.dist, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checksums writes SHA256SUMS, which `sha256sum -c` reads.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := r.sum(e.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(text.String()), 0o644)
}
