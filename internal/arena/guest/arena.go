package guest

import (
	"maps"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/result"
)

// Name is the name of the arena.
const Name = "microvm"

// Inside reports whether this process runs in a guest.
func Inside() bool { return os.Getenv(vm.GuestEnv) != "" }

// New returns the arena microvm: the lab that this process has made in its guest,
// with the name microvm and facts of the guest in its environment.
func New(lab arena.Arena) arena.Arena { return guestLab{lab} }

type guestLab struct{ arena.Arena }

// Name implements arena.Arena.
func (guestLab) Name() string { return Name }

// emulatedSlices is how many times as long as the lab's own the slices on an emulated CPU
// are, which takes 0.3 s to hand the turn on.
const emulatedSlices = 4

// Slice implements arena.Arena.
func (g guestLab) Slice() time.Duration {
	if os.Getenv(vm.EmulatedEnv) == "true" {
		return emulatedSlices * g.Arena.Slice()
	}
	return g.Arena.Slice()
}

// Environment implements arena.Arena: figures of an emulated CPU are marked as
// such.
func (g guestLab) Environment() result.Environment {
	env := maps.Clone(g.Arena.Environment())
	env[result.EmulatedKey] = os.Getenv(vm.EmulatedEnv)
	return env
}
