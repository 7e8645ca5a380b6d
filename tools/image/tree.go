package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of an image: a folder, a symbolic link, a file of this
// machine, or text.
type entry struct {
	mode   fs.FileMode // type and permissions; never setuid
	link   string      // of a symbolic link
	source string      // of a file: its path on this machine, unless the entry has text
	text   string
}

// Tree holds the files of a layer by their paths, without the leading slash.
type Tree struct{ entries map[string]entry }

// NewTree returns a tree without files.
func NewTree() *Tree { return &Tree{map[string]entry{}} }

// Paths returns the paths of all files. A folder comes before its files.
func (t *Tree) Paths() []string { return slices.Sorted(maps.Keys(t.entries)) }

// Sources returns the paths on this machine of the files that come from it.
func (t *Tree) Sources() []string {
	var list []string
	for _, name := range t.Paths() {
		if source := t.entries[name].source; source != "" {
			list = append(list, source)
		}
	}
	return list
}

// Fingerprint changes when the tree changes. Of a file of this machine it
// takes size and time instead of the content.
func (t *Tree) Fingerprint() (string, error) {
	hash := sha256.New() // whose Write never fails
	for _, name := range t.Paths() {
		e := t.entries[name]
		_, _ = fmt.Fprintf(hash, "%q %v %q %q\n", name, e.mode, e.link, e.text)
		if e.source == "" {
			continue
		}
		info, err := os.Stat(e.source)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(hash, "%q %d %d\n", e.source, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// put adds an entry and the folders above it.
func (t *Tree) put(name string, e entry) {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return
	}
	t.entries[name] = e
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, exists := t.entries[dir]; exists {
			return
		}
		t.entries[dir] = entry{mode: fs.ModeDir | 0o755}
	}
}

// AddDir adds an empty folder.
func (t *Tree) AddDir(name string, mode fs.FileMode) { t.put(name, entry{mode: fs.ModeDir | mode}) }

// AddLink adds a symbolic link.
func (t *Tree) AddLink(name, target string) {
	t.put(name, entry{mode: fs.ModeSymlink | 0o777, link: target})
}

// AddText adds a file with that text.
func (t *Tree) AddText(name, text string) { t.put(name, entry{mode: 0o644, text: text}) }

// AddProgram adds the file source of this machine as an executable one. The test
// bed, a module of its own, builds its images with it.
func (t *Tree) AddProgram(name, source string) { t.put(name, entry{mode: 0o755, source: source}) }

// AddRootLinks has /bin and the like be links where they are links in root.
func (t *Tree) AddRootLinks(root string) {
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if target, err := os.Readlink(filepath.Join(root, dir)); err == nil {
			t.AddLink(dir, target)
		}
	}
}

// maxLinks is how long a chain of links may be.
const maxLinks = 40

// AddFile adds the file name below root under the same path. Of a symbolic
// link it adds every link of the chain and the file at its end. A folder adds
// nothing: folders come with their files.
func (t *Tree) AddFile(root, name string) error {
	for range maxLinks {
		at, err := resolve(root, name)
		if err != nil {
			return err
		}
		source := filepath.Join(root, at)
		info, err := os.Lstat(source)
		switch {
		case err != nil:
			return err
		case info.Mode().IsRegular():
			t.put(at, entry{mode: info.Mode().Perm(), source: source})
			return nil
		case info.Mode()&fs.ModeSymlink == 0:
			return nil
		}
		target, err := os.Readlink(source)
		if err != nil {
			return err
		}
		t.AddLink(at, target)
		if name = target; !path.IsAbs(target) {
			name = path.Join(path.Dir(at), target)
		}
	}
	return fmt.Errorf("%s: too many links", name)
}

// resolve returns the path with the links of its folder followed.
func resolve(root, name string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(root, path.Dir(name)))
	if err != nil {
		return "", err
	}
	real, err := filepath.Rel(root, dir)
	return path.Join("/", filepath.ToSlash(real), path.Base(name)), err
}

// AddFolder adds the files below the folder dir of this machine as files below
// name. A link to a file of its own folder stays a link; of another link it adds the file
// that the link leads to.
func (t *Tree) AddFolder(name, dir string) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || rel == "." {
			return err
		}
		if target, err := os.Readlink(file); err == nil && target == filepath.Base(target) {
			t.AddLink(path.Join(name, filepath.ToSlash(rel)), target)
			return nil
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		e := entry{mode: fs.ModeDir | 0o755}
		if info.Mode().IsRegular() {
			e = entry{mode: info.Mode().Perm() | 0o444, source: file}
		}
		t.put(path.Join(name, filepath.ToSlash(rel)), e)
		return nil
	})
}

func (e entry) write(w *tar.Writer, name string) error {
	h := &tar.Header{Name: name, Mode: int64(e.mode.Perm()), Format: tar.FormatPAX}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return w.WriteHeader(h)
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		return w.WriteHeader(h)
	}
	text := []byte(e.text)
	if e.source != "" {
		var err error
		if text, err = os.ReadFile(e.source); err != nil {
			return err
		}
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(text))
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}
