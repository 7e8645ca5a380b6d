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

// Catalogue is what this binary knows, and an arena's own contenders beside it.
type Catalogue struct {
	Contenders []*contender.Contender
	Suites     []*suite.Suite
	Studies    []*study.Study
}

// LoadCatalogue reads the files of this binary.
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

// Contender is the contender of that name.
func (c *Catalogue) Contender(id string) (*contender.Contender, error) {
	return contender.Find(c.Contenders, id)
}

// Pick are the contenders of those names.
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

// OfStudy are the ids of the contenders that the study measured.
func (c *Catalogue) OfStudy(id string) []string {
	var ids []string
	for _, one := range c.Contenders {
		if slices.Contains(one.Studies, id) {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// Suite is the suite of that name.
func (c *Catalogue) Suite(id string) (*suite.Suite, error) {
	return suite.Find(c.Suites, id)
}
