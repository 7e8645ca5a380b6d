package analysis

import (
	"fmt"
	"path"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Study is the published study that a run repeats, as reports show it.
type Study struct {
	ID, Title, By string
	Pictures      []Picture
}

// The kinds of pictures.
const (
	PictureMatrix  = "matrix"  // contenders by steps, each figure as per cent of the baseline's, in the colours of Bands
	PictureFigures = "figures" // contenders by steps, the figures themselves beside the ratios
	PictureLoad    = "load"    // one metric by rate, all underlays together, each contender as a ratio to the baseline on its own
	PictureScatter = "scatter" // for each step, CPU cost against memory above the baseline's
	PictureAgreed  = "agreed"  // our ratios and the study's: rank agreement, and contenders whose places differ
)

// Picture is a drawing or a table of a study. Its words are the study's.
type Picture struct {
	Kind  string `yaml:"kind"`
	Title string `yaml:"title"`
	Note  string `yaml:"note"`
	// Steps are ids or patterns such as http-350-*, in the order of the picture.
	Steps []string `yaml:"steps"`
	// Metric is the metric of load and figures; "" is the headline of each step.
	Metric string `yaml:"metric"`
	// Contenders are the rows of figures, in order; empty: all.
	Contenders []string `yaml:"contenders"`
	// Bands are the colours of matrix, the best first; the last one's AtLeast is not used.
	Bands []Band `yaml:"bands"`
}

// Band is a colour of a matrix, for figures of at least AtLeast of the baseline's.
type Band struct {
	Color   string  `yaml:"color"`
	Word    string  `yaml:"word"`
	AtLeast float64 `yaml:"at_least"`
}

// Colors returns the colours that a Band may have.
func Colors() []string { return []string{"green", "yellow", "orange", "red"} }

// Check returns what is wrong with the picture, or nil.
func (p *Picture) Check() error {
	kinds := []string{PictureMatrix, PictureFigures, PictureLoad, PictureScatter, PictureAgreed}
	switch {
	case !slices.Contains(kinds, p.Kind):
		return fmt.Errorf("kind %q; there are %v", p.Kind, kinds)
	case p.Title == "":
		return fmt.Errorf("the picture has no title")
	case len(p.Steps) == 0 && p.Kind != PictureAgreed:
		return fmt.Errorf("a picture of kind %s needs steps", p.Kind)
	case p.Kind == PictureMatrix && len(p.Bands) == 0:
		return fmt.Errorf("a matrix needs bands")
	case p.Kind == PictureLoad && p.Metric == "":
		return fmt.Errorf("a picture over rates needs a metric")
	}
	if _, known := result.LookupMetric(p.Metric); p.Metric != "" && !known {
		return fmt.Errorf("metric %q is not in the catalogue", p.Metric)
	}
	for _, b := range p.Bands {
		if !slices.Contains(Colors(), b.Color) || b.Word == "" {
			return fmt.Errorf("band %q: want a word and one of the colours %v", b.Color, Colors())
		}
	}
	return nil
}

// Band returns the first band whose AtLeast the share of the baseline's figure reaches.
func (p *Picture) Band(share float64) Band {
	for _, b := range p.Bands {
		if share >= b.AtLeast {
			return b
		}
	}
	return p.Bands[len(p.Bands)-1]
}

// Select returns the steps that the picture shows, in the picture's order.
func (p *Picture) Select(steps []result.Step) []result.Step {
	var out []result.Step
	for _, pattern := range p.Steps {
		for _, s := range steps {
			if match, err := path.Match(pattern, s.ID); err == nil && match && !slices.ContainsFunc(out, func(o result.Step) bool { return o.ID == s.ID }) {
				out = append(out, s)
			}
		}
	}
	return out
}
