// Package programs says which programs contenders, suites and developers' jobs
// run, by name; package host says which package brings each. The package reads
// the catalogue but knows no arena and measures nothing: scripts/setup compiles
// it before anything else, in seconds. Next: pieces.yaml, the data.
package programs

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/suites"
)

// Contender lists what the contender's form in the lab runs.
func Contender(c *contender.Contender) []string {
	programs := slices.Clone(c.Requires.Programs)
	for _, piece := range c.Lab.Pieces() {
		programs = append(programs, table().Pieces[piece.Use]...)
	}
	return unique(programs)
}

func unique(programs []string) []string {
	var list []string
	for _, p := range programs {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// Want is a program with what runs it.
type Want struct {
	Program string   `json:"program"`
	Package string   `json:"package"` // of this machine's distribution; "" where none has it
	Here    bool     `json:"here"`
	For     []string `json:"for"`    // contenders, suites, or other words
	Remedy  string   `json:"remedy"` // "" where it is here
}

// List is what is wanted, in the order of its first use.
type List []Want

func (l *List) add(reason string, programs ...string) {
	for _, p := range programs {
		at := slices.IndexFunc(*l, func(w Want) bool { return w.Program == p })
		if at < 0 {
			w := Want{Program: p, Package: host.ThisDistribution().Package(p), Here: host.Have(p) == nil}
			if !w.Here {
				w.Remedy = host.ThisDistribution().Remedy(p)
			}
			*l, at = append(*l, w), len(*l)
		}
		if w := &(*l)[at]; !slices.Contains(w.For, reason) {
			w.For = append(w.For, reason)
		}
	}
}

// FindMissing lists those that are not here.
func (l List) FindMissing() List {
	return slices.DeleteFunc(slices.Clone(l), func(w Want) bool { return w.Here })
}

// Packages are the distribution's packages that have what is wanted, here or
// not, in alphabetical order.
func (l List) Packages(d host.Distribution) []string {
	var packages []string
	for _, w := range l {
		if p := d.Package(w.Program); p != "" {
			packages = append(packages, p)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Install is the command line that installs what is missing, "" where no
// package would help.
func (l List) Install() string {
	var packages []string
	for _, w := range l.FindMissing() {
		if w.Package != "" && !slices.Contains(packages, w.Package) {
			packages = append(packages, w.Package)
		}
	}
	if packages == nil {
		return ""
	}
	return host.ThisDistribution().Install(packages...)
}

// Run lists what a run in the lab wants: of the suite, or of all if it is "";
// of the contenders, or of all that have a form in the lab and of guests if
// there are none. Errors: *text.UnknownError for an unknown name.
func Run(suite string, ids []string) (List, error) {
	var l List
	if err := l.suites(suite); err != nil {
		return nil, err
	}
	all, err := contender.Load(contenders.FS)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, err := contender.Find(all, id); err != nil {
			return nil, err
		}
	}
	for _, c := range all {
		if len(ids) == 0 || slices.Contains(ids, c.ID) {
			l.add(c.ID, Contender(c)...)
		}
	}
	l.add("the record of the machine", table().Machine...)
	if len(ids) == 0 {
		l.add("guests", table().Guest...)
	}
	return l, nil
}

// Profile lists what one of Profiles wants.
func Profile(name string) (List, error) {
	p, ok := table().Profiles[name]
	if !ok {
		return nil, text.Unknown("profile", name, Profiles())
	}
	var l List
	if p.Lab {
		var err error
		if l, err = Run("", nil); err != nil {
			return nil, err
		}
	}
	if p.Lab && !p.Guest {
		l = slices.DeleteFunc(l, func(w Want) bool { return slices.Contains(table().Guest, w.Program) })
	}
	l.add("make "+name, p.Programs...)
	return l, nil
}

// suites adds what the workloads of the suite, or of all, run.
func (l *List) suites(id string) error {
	files, err := fs.Glob(suites.FS, "*.yaml")
	if err != nil {
		return err
	}
	var ids []string
	for _, file := range files {
		ids = append(ids, strings.TrimSuffix(path.Base(file), ".yaml"))
	}
	if id != "" && !slices.Contains(ids, id) {
		return text.Unknown("suite", id, ids)
	}
	for i, file := range files {
		if id != "" && ids[i] != id {
			continue
		}
		raw, err := fs.ReadFile(suites.FS, file)
		if err != nil {
			return err
		}
		// Package suite checks the files; here their workloads are enough.
		var s struct {
			Steps []struct {
				Workload string `yaml:"workload"`
			} `yaml:"steps"`
		}
		if err := yaml.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, step := range s.Steps {
			l.add("suite "+ids[i], Workload(step.Workload)...)
		}
	}
	return nil
}
