package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	summary  = "Measure, check, compare and tune Kubernetes pod networks"
	homepage = "https://github.com/cnibench/cnibench"
)

// formats are the packages' formats, with the distribution whose names of packages
// they use.
var formats = map[string]string{"deb": "Debian", "rpm": "Fedora"}

// packages writes a .deb and an .rpm for each architecture of Linux. The program
// is static and runs alone: it depends on nothing. It recommends what the demo's
// contenders run, and suggests what the others do.
func (r *release) packages() error {
	contents, err := r.contents()
	if err != nil {
		return err
	}
	for format, distribution := range formats {
		demo, err := r.wanted(distribution, "-suite", "quick", "-contenders", r.demo)
		if err != nil {
			return err
		}
		others, err := r.wanted(distribution)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(p string) bool { return slices.Contains(demo, p) })
		for _, t := range r.targets {
			if t.os != "linux" {
				continue
			}
			full := nfpm.Overridables{Contents: contents, Recommends: demo, Suggests: others}
			if err := r.installable(t, format, full); err != nil {
				return fmt.Errorf("%s.%s: %w", t, format, err)
			}
		}
	}
	return nil
}

// wanted are the distribution's packages that have the programs of contenders and
// suites, of internal/host/packages.txt.
func (r *release) wanted(distribution string, args ...string) ([]string, error) {
	list, err := output(r.command("go", append([]string{"run", "./tools/missing", "-packages", distribution}, args...)...))
	return strings.Fields(list), err
}

// installable writes the package with what both formats share in with.
func (r *release) installable(t target, format string, with nfpm.Overridables) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	with.Contents = append(slices.Clone(with.Contents), r.content(r.program(t), "/usr/bin/cnibench", 0o755))
	with.RPM = nfpm.RPM{BuildHost: "release", Summary: summary, Compression: "zstd"}
	with.Deb = nfpm.Deb{Compression: "xz"}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "cnibench", Version: r.number(), Arch: t.arch, Platform: t.os, Section: "net", Priority: "optional", License: "Apache-2.0", MTime: r.time,
		Maintainer: "The cnibench authors <cnibench@users.noreply.github.com>", Homepage: homepage, Description: summary, DisableGlobbing: true,
		Overridables: with,
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.dist, r.name(t.String()+"."+format)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, out), out.Close())
}

// contents are the files of every package beside the program.
func (r *release) contents() (files.Contents, error) {
	list := files.Contents{r.content(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/cnibench/copyright", 0o644)}
	pages, err := filepath.Glob(filepath.Join(r.work, "man/*.1"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		list = append(list, r.content(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644))
	}
	for shell, dir := range map[string]string{
		"bash": "bash-completion/completions/cnibench", "zsh": "zsh/vendor-completions/_cnibench", "fish": "fish/vendor_completions.d/cnibench.fish",
	} {
		list = append(list, r.content(filepath.Join(r.work, "completions", completions[shell]), "/usr/share/"+dir, 0o644))
	}
	return list, nil
}

func (r *release) content(source, destination string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}}
}
