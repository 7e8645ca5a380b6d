//go:build linux

package products

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is a published Go module at one version.
type module struct {
	path, version string
	sum           string // h1:…, of its content, as in go.sum
}

// download gives the module's folder in the module cache, read-only, after
// the go command has fetched and verified it.
func (m module) download(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version)
	cmd.Dir = os.TempDir()                                            // no module of ours has a say
	cmd.Env = append(os.Environ(), "GOWORK=off", "GONOSUMDB="+m.path) // the sum is held against ours
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	var info struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &info); err == nil {
		err = jsonErr
	}
	if err != nil {
		return "", fmt.Errorf("module %s@%s: %w: %s%s", m.path, m.version, err, info.Error, bytes.TrimSpace(errors.Bytes()))
	}
	if info.Sum != m.sum {
		return "", fmt.Errorf("module %s@%s: its sum is %s, not %s", m.path, m.version, info.Sum, m.sum)
	}
	return info.Dir, nil
}

// copyModule copies a module's folder without the named entries of its top.
func copyModule(from, to string, without ...string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(relative, string(filepath.Separator))
		switch {
		case slices.Contains(without, top):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), content, 0o644)
	})
}

// replaceOnce changes a file in which old must be exactly once.
func replaceOnce(path, old, new string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(content, []byte(old)); n != 1 {
		return fmt.Errorf("%s has %q %d times, not once: another version?", path, old, n)
	}
	return os.WriteFile(path, bytes.Replace(content, []byte(old), []byte(new), 1), 0o644)
}
