package guest

import (
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/result"
)

// Name is the name of the arena.
const Name = "microvm"

// Facts are what a process in a guest knows of the guest.
type Facts struct {
	Emulated bool // the CPU
}

// Here returns the facts of the guest in which the user started this process, with `cnibench
// vm`; nil outside of guests. The guest's init writes them into the environment of its
// command. A task that is handed over has them with it.
func Here() *Facts {
	if os.Getenv(vm.GuestEnv) == "" {
		return nil
	}
	return &Facts{Emulated: os.Getenv(vm.EmulatedEnv) == "true"}
}

// Accel returns the acceleration that the guest has, as a value of --accel.
func (f *Facts) Accel() string {
	if f.Emulated {
		return vm.AccelTCG
	}
	return vm.AccelKVM
}

// New returns the arena microvm: the lab that this process has made in its guest,
// with the name microvm and facts of the guest in its environment.
func New(lab arena.Arena, facts *Facts) arena.Arena { return guestLab{lab, facts} }

type guestLab struct {
	arena.Arena
	facts *Facts
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
