// Package study reads the published studies that `cnibench run --study` repeats:
// data only, strictly decoded. A study chooses flags of that command and the
// pictures of the report; nothing of a study is in code. The package runs nothing
// and knows no arena; what others measured is in package published. Next: the
// files, in /studies.
package study

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
)

// The scales at which a study is run.
const (
	Machine   = "machine"   // what the machine at hand carries, in at most 45 minutes on 2 CPUs
	Published = "published" // the study's own rates, rounds and durations
)

// Scales are the values of --scale.
func Scales() []string { return []string{Machine, Published} }

// Study is a published study as a run repeats it. Its contenders are those of the
// catalogue that name it.
type Study struct {
	ID        string   `yaml:"id"` // of its file, without .yaml
	Title     string   `yaml:"title"`
	By        string   `yaml:"by"`
	Summary   string   `yaml:"summary"`   // what it asks
	Published []string `yaml:"published"` // ids of its figures, in package published
	Tuning    string   `yaml:"tuning"`    // the profile of `cnibench tune` with its host settings; "" for none
	// Run holds the flags at the scale of the machine; AsPublished those that the
	// study's own scale sets beside or instead.
	Run         Flags              `yaml:"run"`
	AsPublished Flags              `yaml:"as_published"`
	Pictures    []analysis.Picture `yaml:"pictures"`
	// Versions are those that the study measured, by product, and Apart what a run
	// does not repeat, with the reason.
	Versions    map[string]string `yaml:"versions"`
	Differences []string          `yaml:"apart"`
}

// Flags are flags of `cnibench run`, by what they need: nothing, a lab, a cluster.
type Flags struct {
	All     map[string]any `yaml:"all"`
	Lab     map[string]any `yaml:"lab"`
	Cluster map[string]any `yaml:"cluster"`
}

// Flags are those of the study at a scale, in a cluster or a lab. Its error is a
// *text.UnknownError.
func (s *Study) Flags(scale string, cluster bool) (map[string]any, error) {
	if !slices.Contains(Scales(), scale) {
		return nil, text.Unknown("scale", scale, Scales())
	}
	chosen := []Flags{s.Run}
	if scale == Published {
		chosen = append(chosen, s.AsPublished)
	}
	out := map[string]any{}
	for _, f := range chosen {
		maps.Copy(out, f.All)
		if cluster {
			maps.Copy(out, f.Cluster)
		} else {
			maps.Copy(out, f.Lab)
		}
	}
	return out, nil
}

// ToReport is the study as reports show it.
func (s *Study) ToReport() *analysis.Study {
	return &analysis.Study{ID: s.ID, Title: s.Title, By: s.By, Pictures: s.Pictures}
}

// Load reads every *.yaml file at the top of fsys, by id.
func Load(fsys fs.FS) ([]*Study, error) {
	return strictyaml.Load(fsys, "studies", Read, func(s *Study) string { return s.ID })
}

// Find is the study with that id. Its error is a *text.UnknownError.
func Find(all []*Study, id string) (*Study, error) {
	return text.Find("study", id, all, func(s *Study) string { return s.ID })
}

// Read decodes and checks one study. file is its name: its base without .yaml is the
// id that the study must have.
func Read(file string, r io.Reader) (*Study, error) {
	s := &Study{}
	if err := strictyaml.Decode(file, r, s); err != nil {
		return nil, err
	}
	if err := s.check(strings.TrimSuffix(path.Base(file), ".yaml")); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (s *Study) check(id string) error {
	if s.ID != id {
		return fmt.Errorf("id %q; the file's name wants %q", s.ID, id)
	}
	if s.Title == "" || s.By == "" || s.Summary == "" {
		return fmt.Errorf("title, by and summary must say what the study is")
	}
	if s.Run.All["suite"] == nil {
		return fmt.Errorf("run.all has no suite")
	}
	if len(s.Pictures) == 0 {
		return fmt.Errorf("no pictures")
	}
	for i := range s.Pictures {
		if err := s.Pictures[i].Check(); err != nil {
			return fmt.Errorf("picture %d: %w", i+1, err)
		}
	}
	return nil
}
