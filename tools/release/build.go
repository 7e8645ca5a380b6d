package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// target is a system that the program is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// program is the path of the program for the target.
func (r *release) program(t target) string { return filepath.Join(r.work, t.String(), "cnibench") }

// podPrograms builds what the program carries into pods: for every architecture, since a
// laptop measures clusters of others.
func (r *release) podPrograms() error {
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		program := filepath.Join(r.work, t.String(), "pod")
		c := r.command("scripts/build-small", "-ldflags", "-s -w -X main.version="+r.version, "-o", program, "./pod")
		c.Env = append(c.Env, "GOOS="+t.os, "GOARCH="+t.arch)
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		packed, err := output(r.command("gzip", "-9", "-n", "-c", program))
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if err := os.WriteFile(filepath.Join(r.root, "internal/podprogram/programs", "linux-"+t.arch+".gz"), []byte(packed), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) programs() error {
	for _, t := range r.targets {
		if err := r.build(t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

// build compiles the program. Neither the machine's folders nor its settings of
// Go get into it.
func (r *release) build(t target) error {
	c := r.command("scripts/build-small", "-ldflags", r.ldflags, "-o", r.program(t), ".")
	c.Env = append(c.Env, "GOOS="+t.os, "GOARCH="+t.arch)
	return c.Run()
}

// command is a command in the checkout with settings of Go that are the same on
// every machine, and for every command, so that what one compiles the next one reuses.
func (r *release) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = r.root, os.Stderr, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off",
		fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()))
	return c
}

// completions are the names of files by shell.
var completions = map[string]string{"bash": "cnibench.bash", "zsh": "_cnibench", "fish": "cnibench.fish", "powershell": "cnibench.ps1"}

// documents writes manual pages and completions, which the program knows.
func (r *release) documents() error {
	complete := filepath.Join(r.work, "completions")
	if err := errors.Join(os.RemoveAll(complete), os.MkdirAll(complete, 0o755)); err != nil {
		return err
	}
	if err := r.command("go", "run", "./tools/man", "-version", r.number(), "-o", r.work).Run(); err != nil {
		return err
	}
	for shell, file := range completions {
		text, err := output(r.command(r.program(target{runtime.GOOS, runtime.GOARCH}), "completion", shell))
		if err != nil {
			return fmt.Errorf("completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(complete, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
