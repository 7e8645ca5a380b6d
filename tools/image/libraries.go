package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AddLibraries adds the shared libraries below root that the programs of this
// machine want, the libraries that those want in turn, and the program that
// loads them. Files that are no programs want nothing.
func (t *Tree) AddLibraries(root string, programs ...string) error {
	seen := map[string]bool{}
	queue := slices.Clone(programs)
	for len(queue) > 0 {
		program := queue[0]
		queue = queue[1:]
		if seen[program] {
			continue
		}
		seen[program] = true
		wants, err := needed(program)
		if err != nil {
			return err
		}
		for _, library := range wants.libraries {
			name, err := wants.find(root, library)
			if err != nil {
				return fmt.Errorf("%s: %w", program, err)
			}
			if err := t.AddFile(root, name); err != nil {
				return err
			}
			queue = append(queue, filepath.Join(root, name))
		}
		if wants.loader != "" {
			if err := t.AddFile(root, wants.loader); err != nil {
				return fmt.Errorf("%s: %w", program, err)
			}
		}
	}
	return nil
}

// wanted is what an ELF file asks of the machine that it runs on.
type wanted struct {
	libraries []string
	loader    string   // path of the dynamic loader
	folders   []string // where to look first
}

// needed reads what the file wants. A file that is not ELF wants nothing.
func needed(name string) (w wanted, err error) {
	file, err := os.Open(name)
	if err != nil {
		return w, err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	var format *elf.FormatError
	if errors.As(err, &format) || err != nil && isShort(file) {
		return w, nil // a script, or data
	}
	if err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	if w.libraries, err = f.ImportedLibraries(); err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := f.DynString(tag)
		if err != nil {
			return w, fmt.Errorf("%s: %w", name, err)
		}
		for _, value := range values {
			for _, dir := range strings.Split(value, ":") {
				w.folders = append(w.folders, strings.ReplaceAll(dir, "$ORIGIN", filepath.Dir(name)))
			}
		}
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			return w, fmt.Errorf("%s: %w", name, err)
		}
		w.loader = strings.TrimRight(string(text), "\x00")
	}
	return w, nil
}

// isShort says whether the file is shorter than an ELF header.
func isShort(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Size() < 64
}

// find returns the path of the library from root.
func (w *wanted) find(root, library string) (string, error) {
	folders := slices.Clone(w.folders)
	for _, pattern := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		for _, dir := range matches {
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				return "", err
			}
			folders = append(folders, filepath.Join("/", rel))
		}
	}
	for _, dir := range folders {
		name := filepath.Join(dir, library)
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			return name, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("library %s is not in %s", library, strings.Join(folders, ", "))
}
