//go:build linux

package products

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/testbed/internal/image"
)

// userland collects programs of this machine for an image, each with the
// shared libraries that it wants, all where they are on this machine.
type userland struct {
	files map[string]image.File
}

func newUserland() *userland {
	u := &userland{files: map[string]image.File{}}
	// Where /bin is /usr/bin, so it is in the image.
	for _, path := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if target, err := os.Readlink(path); err == nil {
			u.files[path] = image.File{Path: path, Link: target}
		}
	}
	return u
}

// list gives what was collected, by path.
func (u *userland) list() []image.File {
	var files []image.File
	for _, f := range u.files {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b image.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// add takes programs, by their names or paths.
func (u *userland) add(ctx context.Context, names ...string) error {
	for _, name := range names {
		path, err := findProgram(name)
		if err != nil {
			return err
		}
		if err := u.copy(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// addLibraries takes the shared libraries that a program from elsewhere wants.
func (u *userland) addLibraries(ctx context.Context, program string) error {
	libraries, err := libraries(ctx, program)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		path, err := canonical(library)
		if err != nil {
			return err
		}
		source, err := filepath.EvalSymlinks(library)
		if err != nil {
			return err
		}
		// The loader looks for the name, whatever the file is called behind it.
		u.files[path] = image.File{Path: path, Source: source, Mode: 0o755}
	}
	return nil
}

// copy takes the file at path. A symbolic link stays one, straight to the file:
// many programs go by the name under which they are started.
func (u *userland) copy(ctx context.Context, path string) error {
	path, err := canonical(path)
	if err != nil {
		return err
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if file != path {
		u.files[path] = image.File{Path: path, Link: file}
	}
	if _, have := u.files[file]; have {
		return nil
	}
	u.files[file] = image.File{Path: file, Source: file, Mode: 0o755}
	return u.addLibraries(ctx, file)
}

// canonical is path with the links of its folder followed.
func canonical(path string) (string, error) {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/bin", "/sbin", "/bin") {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %s on this machine for the image: scripts/setup test installs what is needed", name)
}

// libraries asks ldd which shared libraries a program or library wants.
func libraries(ctx context.Context, path string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(errors.String()+string(out), "not a dynamic executable") {
			return nil, nil
		}
		return nil, fmt.Errorf("ldd %s: %w: %s", path, err, bytes.TrimSpace(errors.Bytes()))
	}
	found, err := parseLdd(bytes.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", path, err)
	}
	return found, nil
}

// parseLdd reads the paths of ldd's output; a library that was not found is an
// error.
func parseLdd(r io.Reader) ([]string, error) {
	var paths []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, path, arrow := strings.Cut(strings.TrimSpace(lines.Text()), " => ")
		if !arrow {
			path = name // the loader itself, or the kernel's page
		}
		if arrow && path == "not found" {
			return nil, fmt.Errorf("library %s not found", name)
		}
		path, _, _ = strings.Cut(path, " (")
		if filepath.IsAbs(path) {
			paths = append(paths, path)
		}
	}
	return paths, lines.Err()
}

// addIptablesExtensions takes the matches and targets that iptables loads by
// their names.
func (u *userland) addIptablesExtensions(ctx context.Context) error {
	found, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no extensions of iptables in /usr/lib/*/xtables: scripts/setup test installs what is needed")
	}
	return u.add(ctx, found...)
}
