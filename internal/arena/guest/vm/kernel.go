package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Kernel is a kernel that a guest can boot.
type Kernel struct {
	Release string `json:"release"` // as uname -r prints it
	Image   string `json:"image"`   // path of its bzImage
	Modules string `json:"modules"` // path of its lib/modules/RELEASE
	Source  string `json:"source"`  // "cache", "installed" or "given"
}

// ErrNoKernel means that a file is not a kernel.
var ErrNoKernel = errors.New("not a Linux kernel image for x86")

// readRelease reads the release of a bzImage from its header:
// Documentation/arch/x86/boot.rst.
func readRelease(r io.Reader) (string, error) {
	const (
		magicAt   = 0x202 // "HdrS"
		versionAt = 0x20e // offset of the text, from 0x200
	)
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	if n < versionAt+2 || !bytes.Equal(head[magicAt:magicAt+4], []byte("HdrS")) {
		return "", ErrNoKernel
	}
	at := 0x200 + int(binary.LittleEndian.Uint16(head[versionAt:]))
	if at == 0x200 || at >= n {
		return "", fmt.Errorf("%w: its header contains no version", ErrNoKernel)
	}
	text, _, found := bytes.Cut(head[at:], []byte{0})
	release, _, _ := strings.Cut(string(text), " ")
	if !found || release == "" || strings.ContainsAny(release, "/\n") {
		return "", fmt.Errorf("%w: its header contains no version", ErrNoKernel)
	}
	return release, nil
}

// Open returns the kernel in the file. modules is a lib/modules/RELEASE folder or a root that
// holds one; if it is "", Open looks beside the image, as in a package. It returns a *Misuse,
// which wraps ErrNoKernel if the file is not a kernel.
func Open(image, modules string) (Kernel, error) {
	k, err := open(image, modules)
	if err != nil {
		return k, &Misuse{err}
	}
	return k, nil
}

func open(image, modules string) (Kernel, error) {
	image, err := filepath.Abs(image)
	if err != nil {
		return Kernel{}, err
	}
	f, err := os.Open(image)
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel: %w", err)
	}
	defer f.Close()
	release, err := readRelease(f)
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel %s: %w; give a bzImage such as /boot/vmlinuz-RELEASE, or a version: --kernel %s", image, err, DefaultVersion)
	}
	k := Kernel{Release: release, Image: image, Source: "given"}
	k.Modules, err = findModules(release, filepath.Dir(image), modules)
	return k, err
}

// findModules finds the folder of modules that belong to the release.
func findModules(release, beside, given string) (string, error) {
	candidates := []string{
		filepath.Join(beside, "..", "lib", "modules", release), // ROOT/boot/vmlinuz-RELEASE
		filepath.Join(beside, "lib", "modules", release),
		filepath.Join("/lib/modules", release),
	}
	if given != "" {
		given, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		candidates = []string{
			filepath.Join(given, "lib", "modules", release), filepath.Join(given, release), given,
		}
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "modules.dep")); err != nil {
			continue
		}
		// The folder's name is the release; a module contains the release too.
		if filepath.Base(dir) != release {
			return "", fmt.Errorf("modules in %s don't belong to kernel %s; give the folder of its own with --modules", dir, release)
		}
		return dir, nil
	}
	if given != "" {
		return "", fmt.Errorf("%s holds no modules of kernel %s (no modules.dep: `depmod -b ROOT %s` writes it); give its lib/modules/%s with --modules", given, release, release, release)
	}
	return "", fmt.Errorf("no modules of kernel %s beside it or in /lib/modules; give its lib/modules/%s with --modules", release, release)
}
