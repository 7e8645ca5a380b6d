package guest

import (
	"maps"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/result"
)

// Name is the name of the arena.
const Name = "microvm"

// New returns the arena microvm: the lab that this process has made in its guest,
// with the name microvm and facts of the guest in its environment.
func New(lab arena.Arena, facts *vm.Facts) arena.Arena { return guestLab{lab, facts} }

type guestLab struct {
	arena.Arena
	facts *vm.Facts
}

// Name implements arena.Arena.
func (guestLab) Name() string { return Name }

// emulatedSlice is how long a slice on an emulated CPU is, which takes 0.3 s to hand the
// turn on.
const emulatedSlice = 200 * time.Millisecond

// Slice implements arena.Arena.
func (g guestLab) Slice() (lead, length time.Duration) {
	if g.facts.Emulated {
		return emulatedSlice / 2, emulatedSlice
	}
	return g.Arena.Slice()
}

// Environment implements arena.Arena: figures of an emulated CPU are marked as
// such.
func (g guestLab) Environment() result.Environment {
	env := maps.Clone(g.Arena.Environment())
	env[result.EmulatedKey] = strconv.FormatBool(g.facts.Emulated)
	return env
}
