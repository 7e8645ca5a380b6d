package vm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// early lists the modules that the guest needs before it can read the host's root, which has
// modprobe. A kernel may have any of them built in.
var early = []string{"virtio_mmio", "virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"}

// moduleDeps holds the lines of a modules.dep: for the path of a module, below the folder of
// modules, the modules that it needs, to be loaded from last to first.
type moduleDeps map[string][]string

// readModulesDep reads a file that depmod(8) wrote.
func readModulesDep(r io.Reader) (moduleDeps, error) {
	deps := moduleDeps{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		module, needs, found := strings.Cut(lines.Text(), ":")
		if !found || module == "" {
			return nil, fmt.Errorf("line %d: no module name before a colon", n)
		}
		deps[module] = strings.Fields(needs)
	}
	return deps, lines.Err()
}

// moduleName returns the kernel's name of a module.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// closure returns the files of the named modules and of all modules that they need, in loading
// order. It leaves out names in builtin.
func (d moduleDeps) closure(names []string, builtin map[string]bool) ([]string, error) {
	byName := make(map[string]string, len(d))
	for file := range d {
		byName[moduleName(file)] = file
	}
	var order []string
	for _, name := range names {
		name = moduleName(name)
		if builtin[name] {
			continue
		}
		file, found := byName[name]
		if !found {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		needs := slices.Clone(d[file])
		slices.Reverse(needs)
		for _, f := range append(needs, file) {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	return order, nil
}

// readBuiltin reads a modules.builtin: the names of the modules that the kernel has built in.
func readBuiltin(r io.Reader) (map[string]bool, error) {
	builtin := map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if name := moduleName(strings.TrimSpace(lines.Text())); name != "" && name != "." {
			builtin[name] = true
		}
	}
	return builtin, lines.Err()
}

// earlyModules returns the closure of early in the folder of modules.
func earlyModules(dir string) ([]string, error) {
	deps, err := readFile(filepath.Join(dir, "modules.dep"), readModulesDep)
	if err != nil {
		return nil, fmt.Errorf("modules of the guest: %w", err)
	}
	builtin, err := readFile(filepath.Join(dir, "modules.builtin"), readBuiltin)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("modules of the guest: %w", err)
	}
	files, err := deps.closure(early, builtin)
	if err != nil {
		return nil, &Unsupported{
			Reason: fmt.Sprintf("%s: %v, without which a guest can't reach the host's files", dir, err),
			Remedy: "choose a distribution's general kernel: --kernel " + DefaultVersion,
		}
	}
	return files, nil
}

// readFile parses the file.
func readFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	value, err := read(f)
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}
