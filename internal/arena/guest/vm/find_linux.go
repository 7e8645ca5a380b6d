package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
)

// Find returns the kernel that spec names: a version such as "6.12" (DefaultVersion if spec is
// ""), or the path of an image. modules is the folder of the image's modules; by default they
// are looked for beside the image. A version that is neither in the cache nor installed is
// downloaded into the cache as the distribution's package; Find logs that. It returns a
// *Misuse, or an *Unsupported if there is no such kernel.
func Find(ctx context.Context, spec, modules string, log *slog.Logger) (Kernel, error) {
	if runtime.GOARCH != "amd64" {
		return Kernel{}, &Unsupported{Reason: "guests are made for amd64 only, and this is " + runtime.GOARCH, Remedy: "run it natively: --arena lab"}
	}
	if spec != "" && !isVersion(spec) {
		return Open(spec, modules)
	}
	if modules != "" {
		return Kernel{}, misuse("--modules %s: a kernel of a version has its own; give the path of an image with --kernel", modules)
	}
	if k, found := Lookup(spec); found {
		return k, nil
	}
	if spec == "" {
		spec = DefaultVersion
	}
	return fetch(ctx, spec, log)
}

// Lookup is Find without a download: it returns false if the version is not on this machine.
func Lookup(version string) (Kernel, bool) {
	if version == "" {
		version = DefaultVersion
	}
	for _, k := range Kernels() {
		if ofVersion(k.Release, version) {
			return k, true
		}
	}
	return Kernel{}, false
}

// fetch downloads the package of the version and unpacks it into the cache, without installing
// it. After a crash the kernel is complete or absent.
func fetch(ctx context.Context, version string, log *slog.Logger) (Kernel, error) {
	if err := have(program); err != nil { // without QEMU a download of 120 MB would be in vain
		return Kernel{}, err
	}
	for _, tool := range programs.Fetch() {
		if host.Have(tool) != nil {
			return Kernel{}, &Unsupported{
				Reason: fmt.Sprintf("no kernel %s here, and %s (package %s), which would get it, is missing", version, tool, host.ThisDistribution().Package(tool)),
				Remedy: "install a kernel, or give one: --kernel /path/to/vmlinuz --modules /path/to/lib/modules/RELEASE",
			}
		}
	}
	pkg, err := imagePackage(ctx, version)
	if err != nil {
		return Kernel{}, err
	}
	if err := os.MkdirAll(kernelsDir(), 0o755); err != nil {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	work, err := os.MkdirTemp(kernelsDir(), ".fetch-")
	if err != nil {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	defer os.RemoveAll(work)
	unlock, err := lock(work, exclusive)
	if err != nil {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	defer unlock()
	log.Info("fetching a kernel", "package", pkg, "into", kernelsDir())
	if err := tool(ctx, work, "apt-get", "download", "-q", pkg); err != nil {
		return Kernel{}, &Unsupported{Reason: fmt.Sprintf("kernel %s can't be downloaded: %v", version, err), Remedy: "is the package mirror reachable? `apt-get update`, or give a kernel: --kernel /path/to/vmlinuz"}
	}
	debs, err := filepath.Glob(work + "/*.deb")
	if err != nil || len(debs) != 1 {
		return Kernel{}, fmt.Errorf("kernel %s: apt-get download %s wrote %d packages instead of one; give a kernel yourself: --kernel /path/to/vmlinuz", version, pkg, len(debs))
	}
	root := filepath.Join(work, "root")
	if err := tool(ctx, work, "dpkg-deb", "-x", debs[0], root); err != nil {
		return Kernel{}, err
	}
	return publish(ctx, root)
}

// publish writes the list of modules of an unpacked package, and moves the package to its final
// name.
func publish(ctx context.Context, root string) (Kernel, error) {
	images, err := filepath.Glob(root + "/boot/vmlinuz-*")
	if err != nil || len(images) != 1 {
		return Kernel{}, fmt.Errorf("the kernel's package contains %d files /boot/vmlinuz-* instead of one; give a kernel yourself: --kernel /path/to/vmlinuz", len(images))
	}
	release, err := readFile(images[0], readRelease)
	if err != nil {
		return Kernel{}, err
	}
	if _, err := os.Stat(filepath.Join(root, "lib")); errors.Is(err, os.ErrNotExist) { // newer packages have usr/lib only
		if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
			return Kernel{}, err
		}
	}
	if err := tool(ctx, root, "depmod", "-b", root, release); err != nil {
		return Kernel{}, err
	}
	final := filepath.Join(kernelsDir(), release)
	if err := os.Chmod(root, 0o755); err != nil {
		return Kernel{}, err
	}
	if err := syncAll(root); err != nil {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	if err := os.Rename(root, final); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	if err := atomicfile.SyncPath(kernelsDir()); err != nil {
		return Kernel{}, fmt.Errorf("cache for kernels: %w", err)
	}
	k, err := Open(filepath.Join(final, "boot", "vmlinuz-"+release), "")
	k.Source = "cache"
	return k, err
}

// syncAll writes the folder's file system to disk. After a power failure a kernel of the cache
// is complete or absent.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// imagePackage returns the name of the package with the version's image. A metapackage of that
// version depends on it.
func imagePackage(ctx context.Context, version string) (string, error) {
	metas := []string{"linux-image-" + version + "-amd64", "linux-image-amd64", "linux-image-generic"}
	for _, meta := range metas {
		out, err := exec.CommandContext(ctx, "apt-cache", "depends", "--important", meta).Output()
		if err != nil {
			continue // no such package
		}
		for line := range strings.Lines(string(out)) {
			name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-")
			if ok && ofVersion(name, version) {
				return "linux-image-" + name, nil
			}
		}
	}
	return "", &Unsupported{
		Reason: fmt.Sprintf("the package sources have no kernel %s (asked for %s)", version, strings.Join(metas, ", ")),
		Remedy: "run `apt-get update`, choose another version, or give a kernel: --kernel /path/to/vmlinuz --modules /path/to/lib/modules/RELEASE",
	}
}

// tool runs a program in the folder. Its error holds the program's output.
func tool(ctx context.Context, dir string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// The two kinds of locks: held by several processes, or by one.
const (
	shared    = unix.LOCK_SH
	exclusive = unix.LOCK_EX
)

// lock marks the file or folder as in use until unlock is called or the process ends. It
// returns errInUse if another process holds the lock.
func lock(path string, how int) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errInUse
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// hold prevents Clean from removing a kernel of the cache until release is called or the
// process ends.
func (k Kernel) hold() (release func(), err error) {
	below, err := filepath.Rel(kernelsDir(), k.Image)
	if err != nil || !filepath.IsLocal(below) {
		return func() {}, nil
	}
	folder, _, _ := strings.Cut(below, "/")
	release, err = lock(filepath.Join(kernelsDir(), folder), shared)
	if errors.Is(err, errInUse) {
		return nil, fmt.Errorf("kernel %s is being removed from the cache; run it again, and it is fetched", k.Release)
	}
	return release, err
}
