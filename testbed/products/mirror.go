//go:build linux

package products

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chartutil"
)

// mirrorIndex is the file mirror.yaml, which `cnibench run --install --mirror`
// reads.
type mirrorIndex struct {
	Note  string       `yaml:"note"`
	Files []mirrorFile `yaml:"files"`
}

// mirrorFile is a published file with changes.
type mirrorFile struct {
	Path    string       `yaml:"path"` // below the mirror's folder
	SHA256  string       `yaml:"sha256"`
	Chart   *mirrorChart `yaml:"chart,omitempty"`
	URL     string       `yaml:"url,omitempty"` // of what is no chart
	Changed []string     `yaml:"changed"`       // in words; none: it is as published
}

type mirrorChart struct {
	Repository string `yaml:"repository"`
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`
}

// Mirror writes a folder with the charts and manifests of the named products, from
// which cnibench can install them without any network. Their images are those
// that Images builds.
func Mirror(ctx context.Context, dir string, names []string, log logf) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	index := mirrorIndex{Note: "made by testbed mirror from the published Go modules; images are made locally, and what the kernels of test beds lack is left out"}
	var added []string // several products have one source
	for _, name := range names {
		s, _, err := find(name)
		if err != nil {
			return err
		}
		if slices.Contains(added, s.name) {
			continue
		}
		if err := index.addSource(ctx, dir, s, log); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		added = append(added, s.name)
	}
	content, err := yaml.Marshal(index)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "mirror.yaml"), content, 0o644)
}

// addSource writes what a source publishes.
func (i *mirrorIndex) addSource(ctx context.Context, dir string, s source, log logf) error {
	files, err := s.files(ctx)
	if err != nil {
		return err
	}
	if files.Chart != nil {
		path, err := chartutil.Save(files.Chart, dir)
		if err != nil {
			return fmt.Errorf("chart %s: %w", files.Name(), err)
		}
		err = i.add(dir, path, mirrorFile{
			Chart:   &mirrorChart{Repository: files.repository, Name: files.Name(), Version: files.Metadata.Version},
			Changed: words(files.changes),
		})
		if err != nil {
			return err
		}
		log("chart %s %s: %s", files.Name(), files.Metadata.Version, path)
	}
	for _, m := range files.manifests {
		path, err := m.save(dir)
		if err != nil {
			return err
		}
		if err := i.add(dir, path, mirrorFile{URL: m.url, Changed: words(m.changes)}); err != nil {
			return err
		}
		log("manifest %s: %s", m.url, path)
	}
	return nil
}

// add notes a file that is there.
func (i *mirrorIndex) add(dir, path string, file mirrorFile) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	file.SHA256 = hex.EncodeToString(sum[:])
	if file.Path, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	i.Files = append(i.Files, file)
	return nil
}

// save writes the manifest at the place that its address names.
func (m manifest) save(dir string) (string, error) {
	u, err := url.Parse(m.url)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, u.Host, filepath.FromSlash(u.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, m.content, 0o644)
}

func words(changes []change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}
