package run

import (
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/text"
)

// The values of --arena. Auto is the lab of this machine, or for a resumed run the arena
// that made it.
const (
	Auto    = "auto"
	Lab     = "lab"
	MicroVM = guest.Name
	Kube    = "kube"
)

// Kind is a value of --arena with what distinguishes it from the others. Nothing else asks
// for an arena by its name: to add an arena, add its row to kinds and its Venue.
type Kind struct {
	Name string
	// Cluster says that the nodes are machines of their own, which somebody else made and
	// named; else a lab makes them on this machine.
	Cluster bool
	// Guest says that the lab is in a guest, under another kernel than this process's.
	Guest bool
	// Policies says that NetworkPolicies can be applied.
	Policies bool
	// Contender is what a task looks at that wants one contender and was given none.
	Contender string
	// MaxRate, bit/s, is the most that such a task sends unless the user says more; "" is no limit.
	MaxRate string

	venue    func(f *Request) (Venue, error)
	selfTest func(f *Request) selftest.Conditions
	made     string   // the arena in a plan that --arena of this name resumes without a word
	older    []string // arenas whose flags a plan of an earlier version may remember, too
}

// kinds returns the kinds in the order of the help.
func kinds() []Kind {
	return []Kind{
		{Name: Auto, Contender: "flannel-vxlan", venue: newHereLab, selfTest: bedInLab, made: Lab, older: []string{MicroVM}},
		{Name: Lab, Contender: "flannel-vxlan", venue: newHereLab, selfTest: bedInLab, made: Lab, older: []string{MicroVM}},
		{Name: MicroVM, Guest: true, Contender: "flannel-vxlan", venue: newGuest, selfTest: bedInLab, made: MicroVM},
		{Name: Kube, Cluster: true, Policies: true, Contender: kube.ThisClusterID, MaxRate: DefaultDiagnoseRate, venue: func(f *Request) (Venue, error) { return newCluster(f) }, selfTest: bedInCluster, made: Kube},
	}
}

// Arenas are the values of --arena, in the order of the help.
func Arenas() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	return names
}

// KindOf returns the kind of that name. It is a *text.UnknownError if there is none, and
// wrong usage if one of the given flags is read by other arenas only: it would do nothing.
func KindOf(arena string, given map[string]bool) (Kind, error) {
	k, err := text.Find("arena", arena, kinds(), func(k Kind) string { return k.Name })
	if err != nil {
		return k, err
	}
	return k, refuseForeignFlags(arena, given)
}

// Kind returns the kind of the request's arena; the zero value if Check would refuse it.
func (f *Request) Kind() Kind {
	k, _ := KindOf(f.Arena, nil)
	return k
}

// arenaOf returns the arena that resumes a run which the named arena made: the arena that
// was asked for, if it may, else the run's own. given says that the user gave --arena; then
// another arena is an error.
func arenaOf(asked, made string, given bool) (string, error) {
	k, err := KindOf(asked, nil)
	if err != nil {
		return "", err
	}
	if _, err := KindOf(made, nil); err != nil || k.made == made {
		return asked, nil // an imported run has no arena; checkSame compares the machines
	}
	if given && asked != Auto {
		return "", exit.Usage("--arena %s: the run was made with --arena %s; leave --arena out", asked, made)
	}
	return made, nil
}
