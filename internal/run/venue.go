package run

import (
	"context"
	"os"
	"os/signal"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Venue is where a task is carried out: this machine's lab (venue_lab.go), a guest
// (venue_guest.go) or a cluster (venue_cluster.go). One venue has one kernel.
type Venue interface {
	// start starts a worker where Open may be called.
	start(ctx context.Context, files ...*os.File) (*Worker, error)
	// Open makes the arena. It must be called in a task.
	Open(ctx context.Context) (*Opened, error)
	// Ends starts agents on every node and in a pod on it, of the contender's network. It must
	// be called in a task.
	Ends(ctx context.Context, contender string) (*Ends, error)
	// Machines returns the nodes that Ends would use. It makes nothing.
	Machines(ctx context.Context) ([]mesh.Node, error)
	// Own are the contenders of the venue beside the catalogue's. Open may fill in
	// what only the arena knows of them.
	Own() []*contender.Contender
	// Candidates are the contenders of all that are considered if the user names none.
	Candidates(all []*contender.Contender) []*contender.Contender
	// Named returns the contenders to run if the user names those of ids: these, and
	// what other flags add. An error says which name can't be run in this venue.
	CheckNames(ids []string) ([]string, error)
	// Equip tells the venue which programs the steps run. A lab returns an error if
	// one is missing on this machine; a cluster's pods are asked when they are up.
	Equip(programs []string) error
	// Describe returns what a reader of the run must know of the contender.
	Describe(c *contender.Contender) result.ContenderInfo
	// Underlays returns this venue once for each MTU of the underlay, bytes. A cluster has
	// one MTU.
	Underlays(mtus []string) ([]Venue, error)
	// Footprint says what a run makes there, as text for people.
	Footprint() string
	Traits() Traits
}

// Traits are how venues differ in what a plan must know.
type Traits struct {
	// ThisMachine says that the contenders run on this machine, whose noise and whose
	// self-test count. Else building a round takes longer than its loads, and contenders
	// share the nodes' ports on the path host.
	ThisMachine bool
	// Choice says that the catalogue's contenders can be measured; else only the network
	// that is there, which others use.
	Choice bool
	// CleanUp is the command that removes what a killed run leaves.
	CleanUp string
}

// UntilEnded returns a context that ends at the first signal of host.EndSignals.
func UntilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, host.EndSignals()...)
}

// Opened is an arena that is ready, with what its users must know.
type Opened struct {
	Arena    arena.Arena
	Exe      string       // this program, as the endpoints start it
	Kernel   string       // release that the arena runs on; empty: as its first node says
	LineRate unit.BitRate // of each node's link; 0 is unknown or unlimited
	MTU      int          // of the underlay, bytes
}

// Venue returns the venue that the request chooses. It makes nothing. It checks the flags
// that the venue reads.
func (f *Request) Venue() (Venue, error) {
	kind, err := KindOf(f.Arena, f.Given)
	if err != nil {
		return nil, err
	}
	return kind.venue(f)
}
