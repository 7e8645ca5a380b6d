package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/contender"
)

// maxDownload limits a download, bytes. The largest published manifest of a recipe has
// 2 MB.
const maxDownload = 32 << 20

// source reads charts and manifests from a mirror or from the network.
type source struct {
	dir    string // of the mirror; empty: the network
	mirror mirror
	client *http.Client
	log    func(format string, args ...any)
	cache  map[string][]byte

	acceptUnpinned bool
	digests        string            // the file that remembers digests of unpinned files
	unpinned       map[string]string // digests of the unpinned files that were read, by name
}

// mirror is the index of a mirror folder, mirror.yaml. Without it the folder
// holds the published files, named DIR/CHART-VERSION.tgz and DIR/HOST/PATH.
type mirror struct {
	Note  string       `json:"note"` // how the mirror differs from the published files
	Files []mirrorFile `json:"files"`
}

type mirrorFile struct {
	Path    string       `json:"path"`
	SHA256  string       `json:"sha256"` // of the file in the mirror
	URL     string       `json:"url"`    // of the published manifest
	Chart   *mirrorChart `json:"chart"`
	Changed []string     `json:"changed"` // differences from the published file
}

type mirrorChart struct {
	Repository string `json:"repository"`
	Name       string `json:"name"`
	Version    string `json:"version"`
}

func newSource(dir string, log func(string, ...any)) (*source, error) {
	s := &source{dir: dir, client: &http.Client{Timeout: 2 * time.Minute}, log: log, cache: map[string][]byte{}, unpinned: map[string]string{}}
	if dir == "" {
		return s, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &kube.UsageError{Text: fmt.Sprintf("--mirror %s: there is no such folder", dir)}
	}
	data, err := os.ReadFile(filepath.Join(dir, "mirror.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, &kube.UsageError{Text: fmt.Sprintf("--mirror %s: %v", dir, err)}
	}
	if err := yaml.UnmarshalStrict(data, &s.mirror); err != nil {
		return nil, &kube.UsageError{Text: fmt.Sprintf("--mirror: %s: %v", filepath.Join(dir, "mirror.yaml"), err)}
	}
	for _, f := range s.mirror.Files {
		if !filepath.IsLocal(f.Path) {
			return nil, &kube.UsageError{Text: fmt.Sprintf("--mirror: %s: path %q leads out of the folder", filepath.Join(dir, "mirror.yaml"), f.Path)}
		}
	}
	return s, nil
}

// chartVersion returns the version of the chart that can be read: the wanted version, else
// the mirror's only version.
func (s *source) chartVersion(c *contender.Chart, wanted string) (string, error) {
	if s.dir == "" {
		return wanted, nil
	}
	if _, err := os.Stat(filepath.Join(s.dir, c.Name+"-"+wanted+".tgz")); err == nil {
		return wanted, nil
	}
	if _, err := os.Stat(filepath.Join(s.dir, c.Name+"-"+wanted, "Chart.yaml")); err == nil {
		return wanted, nil
	}
	var versions []string
	for _, f := range s.mirror.Files {
		if f.Chart != nil && f.Chart.Name == c.Name && sameRepo(f.Chart.Repository, c.Repo) {
			if f.Chart.Version == wanted {
				return wanted, nil
			}
			versions = append(versions, f.Chart.Version)
		}
	}
	switch len(versions) {
	case 0:
		return "", fmt.Errorf("the mirror %s has no chart %s; put its archive there, or leave --mirror out", s.dir, c.Name)
	case 1:
		return versions[0], nil
	}
	return "", fmt.Errorf("the mirror %s has chart %s in the versions %s, but not in %s", s.dir, c.Name, strings.Join(versions, ", "), wanted)
}

func sameRepo(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// chart loads a chart, and logs how a mirror's chart differs from the published chart.
// pinned is the published digest; "" if unknown.
func (s *source) chart(ctx context.Context, c *contender.Chart, version, pinned string) (*chart.Chart, error) {
	name := c.Name + "-" + version
	if s.dir != "" {
		if _, err := os.Stat(filepath.Join(s.dir, name, "Chart.yaml")); err == nil {
			s.logOnce("folder "+name, "chart %s from the folder %s, which has no digest", name, filepath.Join(s.dir, name))
			return loader.LoadDir(filepath.Join(s.dir, name))
		}
	}
	data, err := s.chartArchive(ctx, c, version, pinned)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	ch, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	if ch.Metadata.Name != c.Name || ch.Metadata.Version != version {
		return nil, fmt.Errorf("chart %s: the archive holds chart %s %s instead; give the right one", name, ch.Metadata.Name, ch.Metadata.Version)
	}
	return ch, nil
}

func (s *source) chartArchive(ctx context.Context, c *contender.Chart, version, pinned string) ([]byte, error) {
	name := c.Name + "-" + version + ".tgz"
	if s.dir != "" {
		for _, f := range s.mirror.Files {
			if f.Chart != nil && f.Chart.Name == c.Name && f.Chart.Version == version && sameRepo(f.Chart.Repository, c.Repo) {
				return s.fromMirror(f)
			}
		}
		return s.fromFolder(name, pinned)
	}
	address, err := s.chartURL(ctx, c, version)
	if err != nil {
		return nil, err
	}
	return s.download(ctx, address, pinned)
}

// chartURL returns the address of the chart in the repository's index.
func (s *source) chartURL(ctx context.Context, c *contender.Chart, version string) (string, error) {
	base := strings.TrimSuffix(c.Repo, "/") + "/"
	data, err := s.get(ctx, base+"index.yaml")
	if err != nil {
		return "", err
	}
	var index struct {
		Entries map[string][]struct {
			Version string   `json:"version"`
			URLs    []string `json:"urls"`
		} `json:"entries"`
	}
	if err := yaml.Unmarshal(data, &index); err != nil {
		return "", fmt.Errorf("%sindex.yaml: %w", base, err)
	}
	for _, entry := range index.Entries[c.Name] {
		if entry.Version != version || len(entry.URLs) == 0 {
			continue
		}
		root, err := url.Parse(base)
		if err != nil {
			return "", fmt.Errorf("repository %s: %w", base, err)
		}
		address, err := root.Parse(entry.URLs[0])
		if err != nil {
			return "", fmt.Errorf("%sindex.yaml: %w", base, err)
		}
		return address.String(), nil
	}
	return "", fmt.Errorf("%sindex.yaml does not list version %s, which the publisher may have withdrawn; give the chart's archive in a folder with --mirror, or choose other versions with --versions", base, version)
}

// manifest returns the file at an address, from the mirror if there is one. pinned is the
// published digest; "" if unknown.
func (s *source) manifest(ctx context.Context, address, pinned string) ([]byte, error) {
	if s.dir == "" {
		return s.download(ctx, address, pinned)
	}
	for _, f := range s.mirror.Files {
		if f.URL == address {
			return s.fromMirror(f)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", address, err)
	}
	return s.fromFolder(filepath.Join(u.Host, filepath.FromSlash(u.Path)), pinned)
}

// fromMirror reads a file that the mirror's index lists, and verifies it by the index.
func (s *source) fromMirror(f mirrorFile) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, f.Path))
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	if len(f.Changed) > 0 {
		s.logOnce("changed "+f.Path, "mirror: %s differs from the published file: %s", f.Path, joinList(f.Changed))
	}
	return data, verify(f.Path, data, f.SHA256)
}

// fromFolder reads a file that has its published name.
func (s *source) fromFolder(name, pinned string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the mirror lacks %s; put the file there under that path", name)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	return data, s.verifyDigest(name, data, pinned)
}

func (s *source) download(ctx context.Context, address, pinned string) ([]byte, error) {
	data, err := s.get(ctx, address)
	if err != nil {
		return nil, err
	}
	return data, s.verifyDigest(address, data, pinned)
}

// verifyDigest verifies a file by its published digest. It refuses a file without a published
// digest, unless the user accepts such files or gave the file in a mirror. An accepted
// file's digest is remembered and must be the same at the next installation.
func (s *source) verifyDigest(name string, data []byte, sum string) error {
	if sum != "" {
		return verify(name, data, sum)
	}
	got := digest(data)
	if s.dir == "" && !s.acceptUnpinned {
		return newUnsupported("give --accept-unpinned to install what is published there now; cnibench remembers the digest and compares it the next time",
			"%s is not pinned: its publisher names no digest that could be put into the recipe; the file has sha256 %s", name, got)
	}
	s.logOnce("unpinned "+name, "%s is not pinned by a digest; it has sha256 %s", name, got)
	s.unpinned[name] = got
	if s.dir != "" || s.digests == "" {
		return nil
	}
	return checkDigest(s.digests, name, got)
}

// checkDigest compares a digest with the digest of the last installation, or writes it
// into the file if there is none.
func checkDigest(file, name, sum string) error {
	known := map[string]string{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("digests of earlier installations: %s: %w", file, err)
	}
	switch known[name] {
	case sum:
		return nil
	case "":
	default:
		return newUnsupported("ask its publisher why; to accept the new file, remove its line from "+file,
			"%s has sha256 %s, and had %s when it was installed before: it was replaced", name, sum, known[name])
	}
	known[name] = sum
	if data, err = json.MarshalIndent(known, "", "  "); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("remember the digest of %s: %w", name, err)
	}
	err = atomicfile.ReplaceFile(file, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("remember the digest of %s: %w", name, err)
	}
	return nil
}

func verify(name string, data []byte, sum string) error {
	if got := digest(data); got != sum {
		return fmt.Errorf("%s has sha256 %s, not %s: it is not the file that the recipe names; fetch it anew", name, got, sum)
	}
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// get downloads a file once; further calls return it from the cache.
func (s *source) get(ctx context.Context, address string) ([]byte, error) {
	if data, ok := s.cache[address]; ok {
		return data, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; if this machine can't reach that address, give a folder with its files: --mirror", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", address, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	if len(data) > maxDownload {
		return nil, fmt.Errorf("get %s: more than %d MiB", address, maxDownload>>20)
	}
	s.cache[address] = data
	return data, nil
}

// logOnce logs a message if it is the first with that key.
func (s *source) logOnce(key, format string, args ...any) {
	if _, ok := s.cache["logged "+key]; !ok {
		s.cache["logged "+key] = nil
		s.log(format, args...)
	}
}
