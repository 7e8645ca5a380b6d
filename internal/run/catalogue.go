package run

import (
	"slices"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/study"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/studies"
	"github.com/cnibench/cnibench/suites"
)

// Catalogue holds the contenders, suites and studies of this binary, and the
// contenders that only the arena in use has.
type Catalogue struct {
	Contenders []*contender.Contender
	Suites     []*suite.Suite
	Studies    []*study.Study
}

// LoadCatalogue reads this binary's files; own are the arena's contenders.
func LoadCatalogue(own ...*contender.Contender) (*Catalogue, error) {
	list, err := contender.Load(contenders.FS)
	if err != nil {
		return nil, err
	}
	c := &Catalogue{Contenders: slices.Concat(list, own)}
	if c.Suites, err = suite.Load(suites.FS); err != nil {
		return nil, err
	}
	c.Studies, err = study.Load(studies.FS)
	return c, err
}

// Contender returns the contender of that name.
func (c *Catalogue) Contender(id string) (*contender.Contender, error) {
	return contender.Find(c.Contenders, id)
}

// Pick returns the contenders of those names. The error names an unknown one.
func (c *Catalogue) Pick(ids []string) ([]*contender.Contender, error) {
	var list []*contender.Contender
	for _, id := range ids {
		found, err := c.Contender(id)
		if err != nil {
			return nil, err
		}
		list = append(list, found)
	}
	return list, nil
}

// OfStudy returns the ids of the contenders that the study measured.
func (c *Catalogue) OfStudy(id string) []string {
	var ids []string
	for _, x := range c.Contenders {
		if slices.Contains(x.Studies, id) {
			ids = append(ids, x.ID)
		}
	}
	return ids
}

// Suite returns the suite of that name.
func (c *Catalogue) Suite(id string) (*suite.Suite, error) {
	return suite.Find(c.Suites, id)
}
