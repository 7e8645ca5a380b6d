package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// untar reads a tarball: "type mode content" by name.
func untar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := files[header.Name]; twice {
			t.Errorf("%s is there twice", header.Name)
		}
		files[header.Name] = string(header.Typeflag) + " " + fs.FileMode(header.Mode).String() + " " + header.Linkname + string(content)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"tree/a": "A", "tree/sub/b": "B"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(dir, "tree", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tree/a", filepath.Join(dir, "program")); err != nil {
		t.Fatal(err)
	}
	img := Image{Name: "localhost/x:1", Entrypoint: []string{"/bin/p"}, Files: []File{
		{Path: "/usr/share/tree", Source: filepath.Join(dir, "tree")},
		{Path: "/bin/p", Source: filepath.Join(dir, "program"), Mode: 0o700},
		{Path: "/etc/empty"},
		{Path: "etc/l", Link: "/etc/empty"},
	}}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := img.Write(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same files gave other bytes")
	}

	outer := untar(t, &first)
	_, manifestJSON, _ := strings.Cut(outer["manifest.json"], "[")
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte("["+manifestJSON), &manifest); err != nil {
		t.Fatal(err)
	}
	if got := manifest[0].RepoTags[0]; got != "localhost/x:1" {
		t.Errorf("name %q", got)
	}
	if !strings.Contains(outer[manifest[0].Config], `"Entrypoint":["/bin/p"]`) {
		t.Errorf("config: %s", outer[manifest[0].Config])
	}
	_, layer, _ := strings.Cut(outer[manifest[0].Layers[0]], " -rw-r--r-- ")
	got := untar(t, strings.NewReader(layer))
	want := map[string]string{
		"usr/":                 "5 -rwxr-xr-x ",
		"usr/share/":           "5 -rwxr-xr-x ",
		"usr/share/tree/":      "5 -rwxr-xr-x ",
		"usr/share/tree/a":     "0 -rwxr-xr-x A",
		"usr/share/tree/link":  "2 -rwxrwxrwx a",
		"usr/share/tree/sub/":  "5 -rwxr-xr-x ",
		"usr/share/tree/sub/b": "0 -rwxr-xr-x B",
		"bin/":                 "5 -rwxr-xr-x ",
		"bin/p":                "0 -rwx------ A",
		"etc/":                 "5 -rwxr-xr-x ",
		"etc/empty":            "0 -rw-r--r-- ",
		"etc/l":                "2 -rwxrwxrwx /etc/empty",
	}
	for name, file := range want {
		if got[name] != file {
			t.Errorf("%s: %q, want %q", name, got[name], file)
		}
	}
	if len(got) != len(want) {
		t.Errorf("files %v", got)
	}
}

func TestWriteWithoutSource(t *testing.T) {
	img := Image{Name: "localhost/x:1", Files: []File{{Path: "/p", Source: filepath.Join(t.TempDir(), "none")}}}
	if err := img.Write(io.Discard); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "localhost/x:1") {
		t.Errorf("error %v", err)
	}
}
