package arena

import (
	"context"

	"github.com/cnibench/cnibench/internal/contender"
)

// Renamed is an arena to which some contenders are others: copies of one that it knows, by
// names of their own.
type Renamed struct {
	Arena
	Known func(*contender.Contender) *contender.Contender // as the arena knows it; itself where it is no copy
}

// Supports implements Arena.
func (a Renamed) Supports(ctx context.Context, c *contender.Contender) error {
	return a.Arena.Supports(ctx, a.Known(c))
}

// HasPath implements Arena.
func (a Renamed) HasPath(c *contender.Contender, path string) error {
	return a.Arena.HasPath(a.Known(c), path)
}

// Variant implements Arena.
func (a Renamed) Variant(c *contender.Contender) string { return a.Arena.Variant(a.Known(c)) }

// Up implements Arena.
func (a Renamed) Up(ctx context.Context, c *contender.Contender, variant string) (Network, error) {
	return a.Arena.Up(ctx, a.Known(c), variant)
}
