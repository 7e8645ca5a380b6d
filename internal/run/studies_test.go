package run

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/tune"
)

// What a study names is there: figures, contenders, host settings, and the steps of
// its suite in its pictures.
func TestStudiesNameWhatIsThere(t *testing.T) {
	c, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	figures, err := published.Studies()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Studies) != 4 {
		t.Errorf("%d studies, want the four of the mission", len(c.Studies))
	}
	for _, s := range c.Studies {
		if _, err := published.Select(figures, s.Published); err != nil {
			t.Errorf("%s: %v", s.ID, err)
		}
		of := c.OfStudy(s.ID)
		if !slices.Contains(of, "host") || len(of) < 5 {
			t.Errorf("%s: contenders %v", s.ID, of)
		}
		if _, err := tune.LookupProfile(s.Tuning); s.Tuning != "" && err != nil {
			t.Errorf("%s: %v", s.ID, err)
		}
		for _, rates := range []string{"auto", "given"} {
			suite, err := c.Suite(s.Run.All["suite"].(string))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := suite.Expand(rates, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range s.Pictures {
				if n := len(p.Select(steps)); n < len(p.Steps) {
					t.Errorf("%s: picture %s names %d steps, of which %s has %d", s.ID, p.Title, len(p.Steps), suite.ID, n)
				}
				for _, id := range p.Contenders {
					if !slices.Contains(of, id) {
						t.Errorf("%s: picture %s: %s is no contender of the study", s.ID, p.Title, id)
					}
				}
			}
		}
	}
}
