package main

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// What krew and Homebrew read, with places for the version and the archives.
var (
	//go:embed krew.yaml.tmpl
	krewManifest string
	//go:embed formula.rb.tmpl
	formula string
)

// download is an archive as a package manager finds it.
type download struct{ OS, Arch, URL, SHA256 string }

// managers writes what krew and Homebrew install from.
func (r *release) managers() error {
	values := struct {
		Homepage, Summary, Number string
		Downloads                 []download
	}{homepage, summary, r.number(), nil}
	for _, t := range r.targets {
		sum, err := r.sum(r.archive(t))
		if err != nil {
			return err
		}
		url := homepage + "/releases/download/v" + r.number() + "/" + r.archive(t)
		values.Downloads = append(values.Downloads, download{t.os, t.arch, url, sum})
	}
	for name, text := range map[string]string{"cnibench.yaml": krewManifest, "cnibench.rb": formula} {
		parsed, err := template.New(name).Option("missingkey=error").Parse(text)
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(r.dist, name))
		if err != nil {
			return err
		}
		if err := errors.Join(parsed.Execute(out, values), out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// chart writes the Helm chart with the release's version and image.
func (r *release) chart() error {
	var list []file
	dir := os.DirFS(filepath.Join(r.root, "deploy/chart"))
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		switch name {
		case "Chart.yaml":
			text = []byte(replaceLine(replaceLine(string(text), "version: ", r.number()), "appVersion: ", `"`+r.number()+`"`))
		case "values.yaml":
			text = []byte(replaceLine(string(text), "image: ", r.imageName()))
		}
		list = append(list, file{path: "cnibench/" + name, text: text, mode: 0o644})
		return nil
	})
	if err != nil {
		return err
	}
	return r.pack("cnibench-chart_"+r.number()+".tgz", list)
}

// replaceLine gives the line that begins with the key another value.
func replaceLine(text, key, value string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, key) {
			lines[i] = key + value
		}
	}
	return strings.Join(lines, "\n")
}
