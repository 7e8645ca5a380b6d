package cli

import (
	"slices"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/suites"
)

// catalogue is what this binary knows, and an arena's own contenders beside it.
type catalogue struct {
	contenders []*contender.Contender
	suites     []*suite.Suite
}

func loadCatalogue(own ...*contender.Contender) (*catalogue, error) {
	list, err := contender.Load(contenders.FS)
	if err != nil {
		return nil, err
	}
	c := &catalogue{contenders: slices.Concat(list, own)}
	c.suites, err = suite.Load(suites.FS)
	return c, err
}

func (c *catalogue) contender(id string) (*contender.Contender, error) {
	return contender.Find(c.contenders, id)
}

func (c *catalogue) suite(id string) (*suite.Suite, error) {
	return suite.Find(c.suites, id)
}
