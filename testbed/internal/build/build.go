// Package build makes programs from published Go modules, once: what was built
// stays in the user's cache, in a folder whose name says from what. It may not
// know what the programs are for. Next: ../bed/up.go.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Source says what to build.
type Source struct {
	Dir      string   // folder with the go.mod and go.sum that pin every version
	Version  string   // of the product, for the cache folder's name
	Packages []string // import paths of the programs
	Names    []string // of links to the program, if a single package is several programs that go by the name they are started as
	Env      []string // beside the caller's environment, e.g. CGO_ENABLED=1 in place of the usual 0
	Flags    []string // of go build, beside -trimpath and -ldflags '-s -w'
}

// SourceDir is the folder testbed/NAME of this checkout, looked for from the
// working folder upwards. In the folder testbed it is NAME alone.
func SourceDir(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		for _, candidate := range []string{filepath.Join(dir, "testbed", name), filepath.Join(dir, name)} {
			if _, err := os.Stat(filepath.Join(candidate, "go.mod")); err == nil {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder testbed/%s with a go.mod here or above; start the test bed within a checkout of cnibench", name)
		}
		dir = filepath.Dir(dir)
	}
}

// Programs returns the folder that holds the programs, building them first if
// they aren't there. Two builders of the same wait for each other.
func Programs(ctx context.Context, s Source, logf func(format string, args ...any)) (string, error) {
	key, err := s.key()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "cnibench", "testbed")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	folder := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", filepath.Base(s.Dir), s.Version, key[:12]))
	if complete(folder) {
		return folder, nil
	}
	unlock, err := lock(ctx, folder+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(folder) { // another builder had the lock
		return folder, nil
	}
	building := folder + ".building"
	if err := os.RemoveAll(building); err != nil {
		return "", err
	}
	defer os.RemoveAll(building)
	if err := os.Mkdir(building, 0o755); err != nil {
		return "", err
	}
	logf("building %s %s from its Go modules (some minutes, once)", filepath.Base(s.Dir), s.Version)
	begin := time.Now()
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", building + "/"}, s.Flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, s.Packages...)...)
	cmd.Dir = s.Dir
	// More memory for less time: a compiler that rarely collects garbage takes a fifth less CPU time.
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOGC=800", "GOMEMLIMIT=1GiB"), s.Env...)
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(cmd.Args[1:], " "), s.Dir, err, out)
	}
	programs, err := os.ReadDir(building)
	if err != nil {
		return "", err
	}
	for _, name := range s.Names {
		if err := os.Symlink(programs[0].Name(), filepath.Join(building, name)); err != nil {
			return "", err
		}
	}
	logf("built %s %s in %s", filepath.Base(s.Dir), s.Version, time.Since(begin).Round(time.Second))
	return folder, os.Rename(building, folder)
}

// key names what the programs depend on: the pinned versions, the source files of packages
// that are folders of s.Dir (not of folders that these import), how they are built, and the
// Go version and architecture.
func (s Source) key() (string, error) {
	hash := sha256.New()
	files := []string{filepath.Join(s.Dir, "go.mod"), filepath.Join(s.Dir, "go.sum")}
	for _, p := range s.Packages {
		if strings.HasPrefix(p, ".") { // not of a pinned module
			own, err := filepath.Glob(filepath.Join(s.Dir, p, "*.go"))
			if err != nil {
				return "", err
			}
			files = append(files, own...)
		}
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("what to build %s from: %w", filepath.Base(s.Dir), err)
		}
		hash.Write(content)
	}
	hash.Write(fmt.Appendf(nil, "%q %q %q %q %s %s", s.Packages, s.Names, s.Env, s.Flags, runtime.Version(), runtime.GOARCH))
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// complete says whether the folder is there. It gets its name once everything is in it.
func complete(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// lock waits for the file's lock. The file stays: if it were removed, a builder that waits for
// the old file and one that makes a new file would both get in.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
