package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestParseList(t *testing.T) {
	got, err := parseList(strings.NewReader("/.\n/bin\n/bin/sh\n\nrelative\n/usr/../etc/x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin", "/bin/sh", "/etc/x"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("/.\n/bin/sh\n")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parseList(strings.NewReader(text))
		for _, name := range names {
			if err == nil && (!strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..")) {
				t.Errorf("%q leaves the root", name)
			}
		}
	})
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"cnibench:dev":                   "docker.io/library/cnibench:dev",
		"you/cnibench:1":                 "docker.io/you/cnibench:1",
		"registry.example/cnibench:1":    "registry.example/cnibench:1",
		"localhost/cnibench:dev":         "localhost/cnibench:dev",
		"registry:5000/team/cnibench:1.": "registry:5000/team/cnibench:1.",
	} {
		if got := fullName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// write makes files below dir: text, or a link where it begins with ->.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "->"); isLink {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a package has comes as it lies on the machine; what it does not have is
// named.
func TestAddPackages(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"usr/bin/tool.real": "#!/bin/sh\n", "usr/bin/tool": "->tool.real", "bin": "->usr/bin", "etc/tool.conf": "x",
		"usr/share/doc/tool/README":   "long",
		"var/lib/dpkg/info/tool.list": "/.\n/bin\n/bin/tool\n/etc/tool.conf\n/usr/share/doc/tool/README\n/usr/bin/removed\n",
	})
	tr := NewTree()
	missing, err := tr.AddPackages(root, []string{"tool", "other"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"other"}, missing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bin", "etc", "etc/tool.conf", "usr", "usr/bin", "usr/bin/tool", "usr/bin/tool.real"}, tr.Paths()); diff != "" {
		t.Error(diff)
	}
	if tr.entries["bin"].link != "usr/bin" || tr.entries["usr/bin/tool"].link != "tool.real" || tr.entries["usr/bin/tool.real"].mode != 0o755 {
		t.Errorf("%+v", tr.entries)
	}
}

func TestLinksInACircle(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a": "->b", "b": "->a"})
	if err := NewTree().AddFile(root, "/a"); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Error(err)
	}
}

// The archive is an OCI layout and what docker load reads, and the same files
// give the same bytes.
func TestWrite(t *testing.T) {
	staged := t.TempDir()
	write(t, staged, map[string]string{"bin/cnibench": "the program"})
	build := func(architectures ...string) []byte {
		var images []Image
		for _, architecture := range architectures {
			system, own := NewTree(), NewTree()
			system.AddDir("tmp", fs.ModeSticky|0o777)
			system.AddText("etc/passwd", "root")
			system.AddLink("var/run", "/run")
			if err := own.AddFolder("usr/local", staged); err != nil {
				t.Fatal(err)
			}
			images = append(images, Image{Architecture: architecture, Config: v1.Config{Entrypoint: []string{"/usr/local/bin/cnibench"}}, Layers: []*Tree{system, NewTree(), own}})
		}
		var b bytes.Buffer
		if err := Write(&b, "registry.example/cnibench:1", images...); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one := build("arm64")
	if !bytes.Equal(one, build("arm64")) {
		t.Error("two archives of the same files differ")
	}

	t.Run("docker", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, one, 0o600); err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, "arm64")
	})
	t.Run("OCI", func(t *testing.T) {
		manifest, index := readLayout(t, one)
		if p := manifest.Platform; p == nil || p.Architecture != "arm64" || p.OS != "linux" {
			t.Errorf("platform %v", p)
		}
		image, err := index.Image(manifest.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, "arm64")
	})
	t.Run("two architectures", func(t *testing.T) {
		manifest, index := readLayout(t, build("amd64", "arm64"))
		both, err := index.ImageIndex(manifest.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images, err := both.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for i, architecture := range []string{"amd64", "arm64"} {
			if p := images.Manifests[i].Platform; p == nil || p.Architecture != architecture {
				t.Errorf("platform %v, want %s", p, architecture)
			}
			image, err := both.Image(images.Manifests[i].Digest)
			if err != nil {
				t.Fatal(err)
			}
			checkImage(t, image, architecture)
		}
	})
}

// readLayout unpacks an archive and returns its only entry.
func readLayout(t *testing.T, archive []byte) (v1.Descriptor, v1.ImageIndex) {
	t.Helper()
	dir := t.TempDir()
	unpack(t, bytes.NewReader(archive), dir)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("manifests %+v", manifest.Manifests)
	}
	entry := manifest.Manifests[0]
	if got := entry.Annotations["io.containerd.image.name"]; got != "registry.example/cnibench:1" {
		t.Errorf("name %q", got)
	}
	return entry, index
}

func checkImage(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != architecture || config.OS != "linux" || config.Config.Entrypoint[0] != "/usr/local/bin/cnibench" {
		t.Errorf("%+v", config)
	}
	files := extract(t, image)
	if string(files["usr/local/bin/cnibench"].data) != "the program" || files["tmp"].Mode != 0o1777 || string(files["etc/passwd"].data) != "root" || files["var/run"].Linkname != "/run" {
		t.Errorf("%v", files)
	}
}

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "A", "b": "->a"})
	print := func() string {
		tree := NewTree()
		if err := tree.AddFolder("x", dir); err != nil {
			t.Fatal(err)
		}
		sum, err := tree.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := print()
	if first != print() {
		t.Error("the same files have another fingerprint")
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("longer"), 0o755); err != nil {
		t.Fatal(err)
	}
	if first == print() {
		t.Error("another file has the same fingerprint")
	}
}

type packed struct {
	*tar.Header
	data []byte
}

// each calls use with every file of the archive.
func each(t *testing.T, r io.Reader, use func(packed)) {
	t.Helper()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		use(packed{h, data})
	}
}

// extract is the image's files by name.
func extract(t *testing.T, image v1.Image) map[string]packed {
	t.Helper()
	r := mutate.Extract(image)
	defer r.Close()
	files := map[string]packed{}
	each(t, r, func(p packed) { files[p.Name] = p })
	return files
}

// unpack writes an archive's files below dir.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	each(t, r, func(p packed) {
		name := filepath.Join(dir, filepath.FromSlash(p.Name))
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		switch p.Typeflag {
		case tar.TypeDir:
			err = errors.Join(err, os.MkdirAll(name, 0o755))
		case tar.TypeSymlink:
			err = errors.Join(err, os.Symlink(p.Linkname, name))
		default:
			err = errors.Join(err, os.WriteFile(name, p.data, fs.FileMode(p.Mode)))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
