package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The file is an OCI image layout (image-spec 1.0) as a tar archive, which
// containerd, podman, buildah and skopeo read, and has beside it the manifest
// of `docker save`, which docker load and kind read. The same files give the
// same bytes.

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	platform
	Config struct {
		Env        []string
		Entrypoint []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// dockerManifest is an image in `docker save`'s manifest.json.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeImage writes the image of that name: a layer a tree.
func writeImage(w io.Writer, name, architecture string, trees ...*tree) error {
	out := &archive{tar: tar.NewWriter(w)}
	var c config
	c.platform = platform{architecture, "linux"}
	c.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	c.Config.Entrypoint, c.Config.WorkingDir = []string{"/usr/local/bin/cnibench"}, "/"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title": "cnibench", "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.description": "cnibench and the programs that its steps run, for pods",
	}
	c.RootFS.Type = "layers"
	m := manifest{SchemaVersion: 2, MediaType: typeManifest}
	docker := dockerManifest{RepoTags: []string{name}}
	for _, t := range trees {
		if len(t.entries) == 0 {
			continue
		}
		packed, diff, err := t.layer()
		if err != nil {
			return err
		}
		layer := out.blob(typeLayer, packed)
		m.Layers = append(m.Layers, layer)
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, diff)
		docker.Layers = append(docker.Layers, blobPath(layer))
	}
	m.Config = out.blobJSON(typeConfig, c)
	docker.Config = blobPath(m.Config)
	d := out.blobJSON(typeManifest, m)
	d.Platform = &c.platform
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	d.Annotations = map[string]string{"io.containerd.image.name": fullName(name), "org.opencontainers.image.ref.name": tag}
	out.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	out.json("index.json", index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{d}})
	out.json("manifest.json", []dockerManifest{docker})
	return out.close()
}

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

// layer is the tree as a compressed archive, and the digest of the plain one.
func (t *tree) layer() (packed []byte, diff string, err error) {
	var buf bytes.Buffer
	pack, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	if err := t.archive(io.MultiWriter(pack, sum)); err != nil {
		return nil, "", err
	}
	if err := pack.Close(); err != nil {
		return nil, "", err
	}
	return buf.Bytes(), "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// archive writes the tree as a tar archive.
func (t *tree) archive(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range t.paths() {
		if err := t.entries[name].write(out, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Close()
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

// archive is the file under way; its first error sticks.
type archive struct {
	tar *tar.Writer
	err error
}

func blobPath(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

func (a *archive) blob(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	a.file(blobPath(d), data)
	return d
}

func (a *archive) blobJSON(mediaType string, v any) descriptor {
	return a.blob(mediaType, a.marshal(v))
}

func (a *archive) json(name string, v any) { a.file(name, a.marshal(v)) }

func (a *archive) marshal(v any) []byte {
	data, err := json.Marshal(v)
	if a.err == nil {
		a.err = err
	}
	return data
}

func (a *archive) file(name string, data []byte) {
	if a.err != nil {
		return
	}
	if a.err = a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatPAX}); a.err == nil {
		_, a.err = a.tar.Write(data)
	}
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.tar.Close()
}
