// Command release writes what people install into a folder: archives and
// packages of the program for each system, the chart, the image for pods, the
// files for package managers, a bill of materials, and checksums of them all.
// The same commit gives the same bytes. Next: build.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// release is what is made, and where.
type release struct {
	root string // the checkout
	work string // files on the way
	dist string // files that are published

	version string // as `git describe` has it
	commit  string
	time    time.Time // of the commit
	ldflags string
	demo    string // contenders of `make demo`, with commas between
	targets []target
}

func main() {
	var r release
	flag.StringVar(&r.root, "root", "../..", "the checkout")
	flag.StringVar(&r.dist, "o", "../../dist", "folder to write; what is in it goes away")
	flag.StringVar(&r.work, "work", "../../bin/release", "folder for files on the way")
	flag.StringVar(&r.version, "version", "", "the tag, or what git describe says")
	flag.StringVar(&r.commit, "commit", "", "the commit")
	flag.StringVar(&r.ldflags, "ldflags", "", "flags of the linker")
	flag.StringVar(&r.demo, "demo", "", "contenders whose programs the packages recommend, with commas between")
	epoch := flag.Int64("epoch", 0, "time of the commit, in seconds since 1970")
	only := flag.String("targets", "", "systems, such as linux_amd64,darwin_arm64 (default: all)")
	image := flag.Bool("image", true, "write the image for pods, which takes Debian's packages from its mirror")
	flag.Parse()
	r.time = time.Unix(*epoch, 0).UTC()
	for _, t := range targets {
		if *only == "" || slices.Contains(strings.Split(*only, ","), t.String()) {
			r.targets = append(r.targets, t)
		}
	}
	if err := r.write(*image); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) write(image bool) error {
	for _, dir := range []*string{&r.root, &r.dist, &r.work} {
		full, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = full
	}
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	type step struct {
		name string
		run  func() error
	}
	steps := []step{
		{"programs for pods", r.podPrograms}, {"programs", r.programs}, {"manual pages and completions", r.documents}, {"archives", r.archives},
		{"packages", r.packages}, {"bills of materials", r.materials}, {"chart", r.chart}, {"krew's manifest and Homebrew's formula", r.managers},
	}
	if image {
		steps = append(steps, step{"image", r.image})
	}
	for _, s := range append(steps, step{"checksums", r.checksums}) {
		began := time.Now()
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, "release: %s (%s)\n", s.name, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// number is the version without v, as semantic versioning has it: of a commit
// without a tag before it 0.0.0-DATE.gCOMMIT.
func (r *release) number() string {
	if tag := regexp.MustCompile(`^v(\d+\.\d+\.\d+.*)$`).FindStringSubmatch(r.version); tag != nil {
		return tag[1]
	}
	dirty := ""
	if strings.HasSuffix(r.version, "-dirty") {
		dirty = ".dirty"
	}
	return fmt.Sprintf("0.0.0-%s.g%.12s%s", r.time.Format("20060102"), r.commit, dirty)
}

// name is the name of a file of the release: cnibench_NUMBER_REST.
func (r *release) name(rest string) string { return "cnibench_" + r.number() + "_" + rest }
