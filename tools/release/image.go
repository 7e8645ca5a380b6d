package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// suite is the release of Debian whose programs the image has: the first with
// an iperf3 that sends each stream from a thread of its own.
const suite = "trixie"

func (r *release) imageName() string { return "cnibench:" + r.number() }

// image writes the image for pods, for both architectures. Debian's packages
// come from the mirror that this machine uses; none of them is installed here.
func (r *release) image() error {
	list, err := output(r.command("go", "run", "./tools/podimage", "-list"))
	if err != nil {
		return err
	}
	roots := filepath.Join(r.work, "debian")
	args := []string{"run", "./tools/podimage", "-name", r.imageName(), "-roots", roots, "-o", filepath.Join(r.dist, r.name("image.tar"))}
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		if err := r.debian(filepath.Join(roots, t.arch), t.arch, strings.Fields(list)); err != nil {
			return fmt.Errorf("packages of Debian %s for %s: %w", suite, t.arch, err)
		}
		staged := filepath.Join(r.work, "image", t.arch)
		if err := stage(r.program(t), filepath.Join(staged, "usr/local/bin/cnibench")); err != nil {
			return err
		}
		args = append(args, t.arch+"="+staged)
	}
	return r.command("go", args...).Run()
}

func stage(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o755))
}

// debian unpacks the packages and what they depend on below root, in the way in
// which dpkg would, without their scripts.
func (r *release) debian(root, arch string, packages []string) error {
	state := filepath.Join(r.work, "apt", arch)
	config, err := aptConfig(state, arch)
	if err != nil {
		return err
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	var plan string
	for _, args := range [][]string{{"update"}, {"autoclean"}, append(install, "--download-only"), append(install, "--simulate")} {
		c := r.command("apt-get", args...)
		c.Env = append(c.Env, "APT_CONFIG="+config, "LC_ALL=C")
		if plan, err = output(c); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	archives, err := planned(plan, filepath.Join(state, "cache/archives"))
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(root), os.MkdirAll(filepath.Join(root, "var/lib/dpkg/info"), 0o755)); err != nil {
		return err
	}
	// Debian's programs are below /usr, and the old folders are links.
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr", dir), 0o755), os.Symlink("usr/"+dir, filepath.Join(root, dir))); err != nil {
			return err
		}
	}
	for _, archive := range archives {
		if err := r.unpack(root, archive); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

// planned are the archives in dir of the packages that apt-get would install.
func planned(plan, dir string) (archives []string, err error) {
	for line := range strings.Lines(plan) {
		field := strings.Fields(line)
		if len(field) < 2 || field[0] != "Inst" {
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, field[1]+"_*.deb"))
		if err != nil || len(found) != 1 {
			return nil, errors.Join(err, fmt.Errorf("%s: want one archive in %s, not %d", field[1], dir, len(found)))
		}
		archives = append(archives, found[0])
	}
	return archives, nil
}

// unpack adds the package's files to root, and their names to its list of them.
func (r *release) unpack(root, archive string) error {
	name, _, _ := strings.Cut(filepath.Base(archive), "_")
	files := filepath.Join(r.work, "files.tar")
	defer os.Remove(files)
	tar, err := os.Create(files)
	if err != nil {
		return err
	}
	c := r.command("dpkg-deb", "--fsys-tarfile", archive)
	c.Stdout = tar
	if err := errors.Join(c.Run(), tar.Close()); err != nil {
		return err
	}
	if err := r.command("tar", "--extract", "--file", files, "--directory", root, "--keep-directory-symlink", "--no-same-owner").Run(); err != nil {
		return err
	}
	list, err := output(r.command("tar", "--list", "--file", files))
	if err != nil {
		return err
	}
	var text strings.Builder
	for line := range strings.Lines(list) {
		fmt.Fprintln(&text, path.Join("/", strings.TrimSpace(line)))
	}
	return os.WriteFile(filepath.Join(root, "var/lib/dpkg/info", name+".list"), []byte(text.String()), 0o644)
}

// aptConfig writes a configuration of apt that has its own state below the
// folder, of a machine of that architecture on which nothing is installed.
func aptConfig(state, arch string) (name string, err error) {
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o755); err != nil {
			return "", err
		}
	}
	sources, err := mirrors()
	if err != nil {
		return "", err
	}
	name = filepath.Join(state, "apt.conf")
	for file, text := range map[string]string{
		filepath.Join(state, "status"): "", filepath.Join(state, "sources.list"): sources,
		name: fmt.Sprintf(`APT::Architecture "%s"; APT::Architectures "%[1]s"; APT::Sandbox::User "root"; Acquire::Languages "none";
Dir::State "%s"; Dir::State::Status "%[2]s/status"; Dir::Cache "%[2]s/cache"; Dir::Etc::SourceList "%[2]s/sources.list"; Dir::Etc::SourceParts "-";
`, arch, state),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return name, nil
}

// mirrors are the sources.list lines of this machine's mirrors for suite.
func mirrors() (string, error) {
	targets, err := output(exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages", "Component: main", "Origin: Debian"))
	if err != nil {
		return "", fmt.Errorf("the image takes Debian's packages, so it is built on Debian: %w", err)
	}
	var lines []string
	scan := bufio.NewScanner(strings.NewReader(targets))
	for scan.Scan() {
		address, codename, ok := strings.Cut(scan.Text(), " ")
		if !ok {
			continue
		}
		part := suite // or suite-updates, suite-security
		if _, rest, ok := strings.Cut(codename, "-"); ok {
			part += "-" + rest
		}
		lines = append(lines, "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "+address+" "+part+" main")
	}
	slices.Sort(lines)
	if lines = slices.Compact(lines); len(lines) == 0 {
		return "", errors.New("this machine knows no mirror of Debian; run it on Debian, after apt-get update")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// output runs the command and returns what it prints.
func output(c *exec.Cmd) (string, error) {
	c.Stdout = nil
	var said bytes.Buffer
	c.Stderr = &said
	text, err := c.Output()
	if err != nil {
		_, _ = io.Copy(os.Stderr, &said)
	}
	return string(text), err
}
