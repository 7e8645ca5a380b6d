package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/linux"
)

// upNetwork is a contender's network that is up for a task whose agents do all of the work.
type upNetwork struct {
	*Opened
	Network   arena.Network
	contender *contender.Contender
}

// bringUp brings the contender's network up. In a lab agents may use all CPUs unless the user
// said otherwise: the lab would bind them to one. The caller takes the network down.
func (in *Inside) bringUp(ctx context.Context, id string) (*upNetwork, error) {
	venue := in.Venue
	if venue.Traits().ThisMachine && !in.Request.Given["cpus"] {
		f := *in.Request
		all := strings.ReplaceAll(linux.FormatCPUs(lab.CPUs()), ",", "+")
		f.CPUs = fmt.Sprintf("client=%s,server=%s,rest=%s", all, all, all)
		options, err := f.labOptions(lab.CPUs())
		if err != nil {
			return nil, err
		}
		venue = newLab(&f, options, in.Guest)
	}
	catalogue, err := LoadCatalogue(venue.Own()...)
	if err != nil {
		return nil, err
	}
	c, err := catalogue.Contender(id)
	if err != nil {
		return nil, err
	}
	opened, err := venue.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := opened.Arena.Supports(ctx, c); err != nil {
		return nil, err
	}
	network, err := opened.Arena.Up(ctx, c, opened.Arena.Variant(c))
	if err != nil {
		return nil, fmt.Errorf("%s does not come up: %w", c.ID, err)
	}
	return &upNetwork{Opened: opened, Network: network, contender: c}, nil
}
