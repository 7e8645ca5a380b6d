package run

import (
	"context"
	"maps"
	"os/signal"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// Place is where a command measures or checks: a lab or a cluster. Next: place_lab.go.
type Place interface {
	// Lead carries the job out in that place.
	Lead(ctx context.Context, j *Job) error
	// Inside calls use in that place, with a context that ends at the first signal of
	// lab.EndSignals.
	Inside(ctx context.Context, use func(context.Context) error) error
	// Open makes the arena. It must be called in use.
	Open(ctx context.Context) (*Opened, error)
	// Own are the contenders of the place beside the catalogue's. Open may fill in
	// what only the arena knows of them.
	Own() []*contender.Contender
	// Candidates are the contenders of all that are considered if the user names none.
	Candidates(all []*contender.Contender) []*contender.Contender
	// Named returns the contenders to run if the user names those of ids: these, and
	// what other flags add. An error says which name can't be run in this place.
	Named(ids []string) ([]string, error)
	// Equip tells the place which programs the steps run. A lab returns an error if
	// one is missing on this machine; a cluster's pods are asked when they are up.
	Equip(programs []string) error
	// Describe returns what a reader of the run must know of the contender.
	Describe(c *contender.Contender) result.ContenderInfo
}

// UntilEnded returns a context that ends at the first signal of lab.EndSignals.
func UntilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, lab.EndSignals()...)
}

// Opened is an arena that is ready, with what its users must know.
type Opened struct {
	Arena    arena.Arena
	Exe      string       // this program, as the endpoints start it
	Kernel   string       // release that the arena runs on; empty: as its first node says
	LineRate unit.BitRate // of each node's link; 0 is unknown or unlimited
	MTU      int          // of the underlay, bytes
}

// Kind is a value of --arena.
type Kind struct {
	Name  string
	makes []string // the arenas that its runs name
	// flags are the flags that this kind reads. Foreign refuses flags that only other
	// kinds read.
	flags []string
	// settings are the flags that a plan remembers; recorded returns their values. A
	// resumed run can't change the settings in fixed.
	settings, fixed []string
	recorded        func(f *Request) map[string]string
	// check finds wrong usage before anything is read.
	check func(f *Request) error
	// place returns the place that the request chooses. It makes nothing.
	place func(f *Request) (Place, error)
	// Places returns the places for a check, one for each MTU of the underlay, with the
	// same contenders. A cluster has one MTU and one place.
	Places func(f *Request, mtus []string) ([]Place, error)
}

const (
	Auto    = "auto"
	Lab     = "lab"
	MicroVM = guest.Name
	Kube    = "kube"
)

// Kinds are the values of --arena, in the order of the help.
func Kinds() []Kind {
	return []Kind{labKind(Auto), labKind(Lab), labKind(MicroVM), kubeKind()}
}

// FindArena returns the kind of that name, else a *text.UnknownError.
func FindArena(name string) (Kind, error) {
	return text.Find("arena", name, Kinds(), func(k Kind) string { return k.Name })
}

// Foreign refuses flags of other arenas, which would do nothing.
func (k *Kind) Foreign(given map[string]bool) error {
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(k.flags, flag) {
			continue
		}
		var others []string
		for _, other := range Kinds() {
			if slices.Contains(other.flags, flag) {
				others = append(others, other.Name)
			}
		}
		if others != nil {
			next := "leave it out"
			if !given["arena"] {
				next = "add --arena " + others[len(others)-1]
			}
			return exit.Usage("--%s: means nothing with --arena %s, only with %s; %s", flag, k.Name, strings.Join(others, ", "), next)
		}
	}
	return nil
}

// resuming returns the kind that resumes a run whose arena has that name: k if k
// makes such runs, else the first kind that does. given says that the user gave --arena;
// then another kind is an error.
func (k Kind) resuming(name string, given bool) (Kind, error) {
	if slices.Contains(k.makes, name) {
		return k, nil
	}
	kinds := Kinds()
	at := slices.IndexFunc(kinds, func(other Kind) bool { return slices.Contains(other.makes, name) })
	switch {
	case at < 0:
		return k, nil // an imported run; checkSame compares the machines
	case given:
		return k, exit.Usage("--arena %s: the run was made with --arena %s; leave --arena out", k.Name, kinds[at].Name)
	}
	return kinds[at], nil
}

// isSetting reports whether a plan of this kind may remember the flag.
func (k *Kind) isSetting(flag string) bool {
	return slices.Contains(commonSettings, flag) || slices.Contains(k.settings, flag)
}
