// Package image writes container images of files on this machine, without a
// container engine. It runs no program and fetches nothing. Next: tree.go for
// what goes into a layer.
package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is the image of one architecture.
type Image struct {
	Architecture string // as Go names it; empty: this machine's
	Config       v1.Config
	Layers       []*Tree // the lowest first; an empty tree is left out
}

// Write writes an archive that holds the images under one name, which has a
// tag. The archive is an OCI image layout, which containerd, podman, buildah
// and skopeo read. With one image it holds the manifest of `docker save` too,
// which docker load and kind read. The same files give the same bytes.
func Write(w io.Writer, name string, images ...Image) (err error) {
	dir, err := os.MkdirTemp("", "cnibench-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeLayout(dir, name, images); err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	all := NewTree()
	if err := all.AddFolder("/", dir); err != nil {
		return err
	}
	return all.archive(w)
}

func writeLayout(dir, name string, images []Image) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	named := layout.WithAnnotations(map[string]string{"io.containerd.image.name": fullName(name), "org.opencontainers.image.ref.name": tag})
	var built []v1.Image
	var several v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		img, err := i.write(path)
		if err != nil {
			return err
		}
		built = append(built, img)
		several = mutate.AppendManifests(several, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: i.platform()}})
	}
	// The index is written anew: its entries so far have no names.
	if path, err = layout.Write(dir, empty.Index); err != nil {
		return err
	}
	if len(images) > 1 {
		return path.AppendIndex(several, named)
	}
	if err := path.AppendImage(built[0], named, layout.WithPlatform(*images[0].platform())); err != nil {
		return err
	}
	return writeDockerManifest(path, name, built[0])
}

func (i Image) platform() *v1.Platform {
	p := &v1.Platform{OS: "linux", Architecture: i.Architecture}
	if p.Architecture == "" {
		p.Architecture = runtime.GOARCH
	}
	return p
}

// write writes the image's blobs and returns the image that has them.
func (i Image) write(path layout.Path) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	platform := i.platform()
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, Config: i.Config, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, err
	}
	for _, tree := range i.Layers {
		if len(tree.entries) == 0 {
			continue
		}
		if img, err = mutate.AppendLayers(img, tree.layer()); err != nil {
			return nil, err
		}
	}
	if err := path.AppendImage(img); err != nil {
		return nil, err
	}
	// The layers' streams are used up: from here on their blobs are read.
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	return path.Image(digest)
}

// layer is read once, while it is written: an image may be larger than what
// one would like to hold in memory.
func (t *Tree) layer() v1.Layer {
	r, w := io.Pipe()
	go func() { w.CloseWithError(t.archive(w)) }()
	return stream.NewLayer(r, stream.WithMediaType(types.OCILayer))
}

// writeDockerManifest has `docker load` find the blobs of the layout.
func writeDockerManifest(path layout.Path, name string, img v1.Image) error {
	config, err := img.ConfigName()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	m := tarball.Descriptor{Config: blobPath(config), RepoTags: []string{name}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		m.Layers = append(m.Layers, blobPath(digest))
	}
	data, err := json.Marshal(tarball.Manifest{m})
	if err != nil {
		return err
	}
	return path.WriteFile("manifest.json", data, 0o644)
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// fullName is the name as container runtimes complete it.
func fullName(name string) string {
	first, _, several := strings.Cut(name, "/")
	switch {
	case !several:
		return "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		return "docker.io/" + name
	}
	return name
}

// archive writes the tree as a tar archive.
func (t *Tree) archive(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range t.Paths() {
		if err := t.entries[name].write(out, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Close()
}
