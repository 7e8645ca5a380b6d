// Package image writes container images of files on this machine, in the
// format of `docker save`, which containerd imports. It may not fetch anything.
// Next: ../bed/up.go.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Image is one layer of files and how to start a container of it.
type Image struct {
	Name       string // with a tag, as localhost/pause:1
	Entrypoint []string
	Cmd        []string
	Env        []string
	Files      []File
}

// File is a file or folder in the image. Folders above it need not be named.
type File struct {
	Path   string      // within the image
	Mode   fs.FileMode // permissions; 0: those of Source, else 0644
	Source string      // a file or folder of this machine, taken with all below it; links stay links below it and are followed at it
	Data   []byte      // content, without a Source
	Link   string      // target of a symbolic link, instead of content
}

// Write writes the image as a tarball. The same files give the same bytes.
func (i Image) Write(w io.Writer) error {
	layer, err := os.CreateTemp("", "cnibench-layer-")
	if err != nil {
		return err
	}
	defer layer.Close()
	if err := os.Remove(layer.Name()); err != nil { // gone with us, whatever our end
		return err
	}
	hash := sha256.New()
	if err := i.writeLayer(io.MultiWriter(layer, hash)); err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Env": i.Env},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	configSum := sha256.Sum256(config)
	configName := hex.EncodeToString(configSum[:]) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{i.Name}, "Layers": []string{digest + "/layer.tar"}}})
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, part := range []struct {
		name    string
		size    int64
		content io.Reader
	}{
		{"manifest.json", int64(len(manifest)), strings.NewReader(string(manifest))},
		{configName, int64(len(config)), strings.NewReader(string(config))},
		{digest + "/layer.tar", size, layer},
	} {
		if err := archive.WriteHeader(&tar.Header{Name: part.name, Mode: 0o644, Size: part.size, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := io.Copy(archive, part.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (i Image) writeLayer(w io.Writer) error {
	l := layerWriter{tar: tar.NewWriter(w), folders: map[string]bool{".": true, "": true}}
	for _, file := range i.Files {
		if err := l.add(file); err != nil {
			return err
		}
	}
	return l.tar.Close()
}

type layerWriter struct {
	tar     *tar.Writer
	folders map[string]bool // those that are there
}

func (l *layerWriter) add(file File) error {
	name := strings.TrimPrefix(path.Clean("/"+file.Path), "/")
	switch {
	case file.Link != "":
		return l.write(name, &tar.Header{Typeflag: tar.TypeSymlink, Linkname: file.Link, Mode: 0o777}, nil)
	case file.Source == "":
		mode := file.Mode.Perm()
		if mode == 0 {
			mode = 0o644
		}
		return l.write(name, &tar.Header{Typeflag: tar.TypeReg, Size: int64(len(file.Data)), Mode: int64(mode)}, strings.NewReader(string(file.Data)))
	}
	source, err := filepath.EvalSymlinks(file.Source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, from)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if file.Mode != 0 && !info.IsDir() {
			mode = file.Mode.Perm()
		}
		to := path.Join(name, filepath.ToSlash(below))
		switch {
		case info.IsDir():
			return l.folder(to)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			return l.write(to, &tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, nil)
		case !info.Mode().IsRegular():
			return nil // sockets and devices are no content
		}
		content, err := os.Open(from)
		if err != nil {
			return err
		}
		defer content.Close()
		return l.write(to, &tar.Header{Typeflag: tar.TypeReg, Size: info.Size(), Mode: int64(mode)}, content)
	})
}

// folder adds a folder and those above it, once.
func (l *layerWriter) folder(name string) error {
	if l.folders[name] {
		return nil
	}
	if err := l.folder(path.Dir(name)); err != nil {
		return err
	}
	l.folders[name] = true
	return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}

func (l *layerWriter) write(name string, header *tar.Header, content io.Reader) error {
	if err := l.folder(path.Dir(name)); err != nil {
		return err
	}
	header.Name, header.ModTime = name, time.Unix(0, 0)
	if err := l.tar.WriteHeader(header); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(l.tar, content)
	return err
}
