package run

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/text"
)

// memory is what a run directory and a resumption do with a flag.
type memory int

const (
	forget   memory = iota // the flag is of this command line alone
	fixed                  // the plan has it in a place of its own; a resumed run can't change it
	recorded               // the plan's settings remember it; a resumed run may be given another value
	settled                // the plan's settings remember it; a resumed run can't change it
	regive                 // no plan remembers it, since runs are published: a resumption must be given it again
)

// flag is a flag of the command line, for the arenas that read it in this way.
type flag struct {
	name   string
	arenas []string // nil: all
	memory memory
	access
	usual string // value that is not recorded
}

// access reads a flag of a request and sets it. get returns "" for a value that is not
// worth recording.
type access struct {
	get func(f *Request) string
	set func(f *Request, value string) error
}

// flags are those that a request holds, the only list of them. A flag that two arenas read
// differently has two rows. The pseudo flags cni-conf-text and suite-text keep the text of
// files. To add a flag, add its row here and its line in the command.
func flags() []flag {
	inGuest, labs, cluster := []string{MicroVM}, []string{Auto, Lab, MicroVM}, []string{Kube}
	return []flag{
		{"suite", nil, fixed, word(func(f *Request) *string { return &f.Suite }), ""},
		{suiteTextKey, nil, settled, word(func(f *Request) *string { return &f.SuiteText }), ""},
		{"study", nil, settled, word(func(f *Request) *string { return &f.Study }), ""},
		{"scale", nil, settled, onlyIf(func(f *Request) bool { return f.Study != "" }, word(func(f *Request) *string { return &f.Scale })), ""},
		{"steps", nil, settled, list(func(f *Request) *[]string { return &f.Steps }, ","), ""},
		{setKey, nil, settled, list(func(f *Request) *[]string { return &f.Changes }, "\n"), ""},
		{"contenders", nil, fixed, word(func(f *Request) *string { return &f.Contenders }), ""},
		{"baseline", nil, fixed, word(func(f *Request) *string { return &f.Baseline }), ""},
		{"services", nil, settled, numbers(func(f *Request) *[]int { return &f.Services }), ""},
		{"check", nil, settled, word(func(f *Request) *string { return &f.Checks }), ""},
		{"rates", nil, settled, word(func(f *Request) *string { return &f.Rates }), suite.RatesAuto},
		{"rates-from", nil, fixed, word(func(f *Request) *string { return &f.RatesFrom }), ""},
		{maxRateFlag, nil, settled, word(func(f *Request) *string { return &f.MaxRate }), ""},
		{"rounds", nil, fixed, number(func(f *Request) *int { return &f.Rounds }), ""},
		{"duration", nil, fixed, span(func(f *Request) *time.Duration { return &f.Duration }), ""},
		{"warmup", nil, fixed, span(func(f *Request) *time.Duration { return &f.Warmup }), ""},
		{"slice", nil, fixed, span(func(f *Request) *time.Duration { return &f.Slice }), ""},
		{"seed", nil, fixed, access{get: func(f *Request) string { return fmt.Sprint(f.Seed) }}, ""},
		{"until", nil, forget, word(func(f *Request) *string { return &f.Until }), ""},
		{"max-time", nil, forget, span(func(f *Request) *time.Duration { return &f.MaxTime }), ""},
		{"out", nil, fixed, access{}, ""},

		{"nodes", labs, settled, word(func(f *Request) *string { return &f.Nodes }), ""},
		{"underlay", labs, settled, word(func(f *Request) *string { return &f.Underlay }), ""},
		{"mtu", labs, settled, word(func(f *Request) *string { return &f.MTU }), ""},
		{"pod-mtu", labs, settled, word(func(f *Request) *string { return &f.PodMTU }), ""},
		{"line-rate", labs, settled, word(func(f *Request) *string { return &f.LineRate }), ""},
		{"congestion-control", labs, settled, word(func(f *Request) *string { return &f.Congestion }), ""},
		{"cpus", labs, settled, word(func(f *Request) *string { return &f.CPUs }), ""},
		{"offload", labs, settled, word(func(f *Request) *string { return &f.Offload }), ""},
		{"cni-conf", labs, settled, word(func(f *Request) *string { return &f.CNIConf }), ""},
		{"cni-transport", labs, settled, onlyIf(func(f *Request) bool { return f.CNIConf != "" }, word(func(f *Request) *string { return &f.CNITransport })), ""},
		{cniTextKey, labs, settled, access{
			get: func(f *Request) string {
				if f.CNIConf == "" {
					return ""
				}
				text, _ := maskSecrets(f.CNIText)
				return text
			},
			set: func(f *Request, value string) error { f.CNIText = value; return nil },
		}, ""},
		{"keep", labs, forget, truth(func(f *Request) *bool { return &f.Keep }), ""},
		{"cache", labs, forget, access{}, ""}, // of cnibench clean

		{"kernel", inGuest, recorded, path(func(f *Request) *string { return &f.Guest.Kernel }, vm.IsPath), ""},
		{"modules", inGuest, recorded, path(func(f *Request) *string { return &f.Guest.Modules }, func(string) bool { return true }), ""},
		{"accel", inGuest, recorded, word(func(f *Request) *string { return &f.Guest.Accel }), vm.AccelAuto},
		{"vm-cpus", inGuest, recorded, number(func(f *Request) *int { return &f.Guest.CPUs }), ""},
		{"vm-memory", inGuest, recorded, word(func(f *Request) *string { return &f.Guest.Memory }), guest.DefaultMemory},
		{"nic", inGuest, forget, word(func(f *Request) *string { return &f.NIC }), ""}, // of cnibench tune bench

		{"mtu", cluster, settled, onlyIf(func(f *Request) bool { return f.Given["mtu"] }, word(func(f *Request) *string { return &f.MTU })), ""},
		{"line-rate", cluster, settled, word(func(f *Request) *string { return &f.LineRate }), ""},
		{"image", cluster, settled, word(func(f *Request) *string { return &f.Cluster.Image }), ""},
		{"pod-cpu", cluster, settled, word(func(f *Request) *string { return &f.Cluster.CPU }), ""},
		{"pod-memory", cluster, settled, word(func(f *Request) *string { return &f.Cluster.Memory }), ""},
		{"service-kind", cluster, settled, word(func(f *Request) *string { return &f.Cluster.Service }), kube.ClusterIP},
		{"install", cluster, settled, truth(func(f *Request) *bool { return &f.Cluster.Install }), ""},
		{"versions", cluster, settled, onlyIf(func(f *Request) bool { return f.Cluster.Install }, word(func(f *Request) *string { return &f.Cluster.Versions })), ""},
		{"pull-policy", cluster, recorded, word(func(f *Request) *string { return &f.Cluster.PullPolicy }), ""},
		{"tolerations", cluster, recorded, list(func(f *Request) *[]string { return &f.Cluster.Tolerations }, ","), ""},
		{"anonymous", cluster, settled, truth(func(f *Request) *bool { return &f.Cluster.Anonymous }), ""},
		{"namespace-prefix", cluster, recorded, word(func(f *Request) *string { return &f.Cluster.Namespace }), DefaultNamespace},

		// Where the cluster is, the names of its nodes, and what the user agreed to.
		{"kubeconfig", cluster, regive, word(func(f *Request) *string { return &f.Cluster.Kubeconfig }), ""},
		{"context", cluster, regive, word(func(f *Request) *string { return &f.Cluster.Context }), ""},
		{"request-timeout", cluster, regive, span(func(f *Request) *time.Duration { return &f.Cluster.RequestTimeout }), ""},
		{"node-label", cluster, regive, word(func(f *Request) *string { return &f.Cluster.NodeLabel }), ""},
		{"pod", cluster, regive, word(func(f *Request) *string { return &f.Cluster.Pod }), ""},
		{"to", cluster, regive, word(func(f *Request) *string { return &f.Cluster.To }), ""},
		{"nodes", cluster, regive, word(func(f *Request) *string { return &f.Nodes }), ""},
		{"namespace", cluster, regive, list(func(f *Request) *[]string { return &f.Cluster.Within }, ","), ""},
		{"privileged", cluster, regive, truth(func(f *Request) *bool { return &f.Cluster.Privileged }), ""},
		{"scratch", cluster, regive, truth(func(f *Request) *bool { return &f.Cluster.Scratch }), ""},
		{"mirror", cluster, regive, word(func(f *Request) *string { return &f.Cluster.Mirror }), ""},
		{"fact", cluster, regive, access{get: func(f *Request) string { return pairs(f.Cluster.Facts) }}, ""},
		{"accept-unpinned", cluster, regive, truth(func(f *Request) *bool { return &f.Cluster.AcceptUnpinned }), ""},
		{"all-runs", cluster, forget, access{}, ""}, // of cnibench clean
	}
}

// The settings that hold the text of a file, and the changes of a suite, a line each.
const (
	cniTextKey   = "cni-conf-text"
	setKey       = "set"
	suiteTextKey = "suite-text"
)

// readBy says whether the arena reads the flag in the way of this row.
func (r *flag) readBy(arena string) bool { return r.arenas == nil || slices.Contains(r.arenas, arena) }

// refuseForeignFlags refuses flags that only other arenas read, which would do nothing.
func refuseForeignFlags(arena string, given map[string]bool) error {
	all := flags()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var readers []string
		for i := range all {
			if all[i].name == name && given[name] {
				if all[i].readBy(arena) {
					readers = nil
					break
				}
				readers = append(readers, all[i].arenas...)
			}
		}
		if readers != nil {
			next := "leave it out"
			if !given["arena"] {
				next = "add --arena " + readers[len(readers)-1]
			}
			return exit.Usage("--%s: means nothing with --arena %s, only with %s; %s", name, arena, strings.Join(readers, ", "), next)
		}
	}
	return nil
}

// Settings returns the flags that the plan remembers, with their values.
func (f *Request) Settings() map[string]string {
	s := map[string]string{}
	for _, r := range flags() {
		if r.memory != recorded && r.memory != settled || !r.readBy(f.Arena) {
			continue
		}
		if value := r.get(f); value != "" && value != r.usual {
			s[r.name] = value
		}
	}
	return s
}

// ApplyRecorded sets the flags that a plan remembers, unless the command line gives them.
// Any other flag in the plan is an error, since another person may have written the plan.
func (f *Request) ApplyRecorded(settings map[string]string) error {
	all, kind := flags(), f.Kind()
	for name, value := range settings {
		at := slices.IndexFunc(all, func(r flag) bool {
			return r.name == name && (r.memory == recorded || r.memory == settled) && (r.readBy(f.Arena) || slices.ContainsFunc(kind.older, r.readBy))
		})
		switch {
		case at < 0:
			return fmt.Errorf("the run was made with a setting that this version does not know: %s", name)
		case f.Given[name]:
			continue
		}
		if err := all[at].set(f, value); err != nil {
			return fmt.Errorf("setting %s of the run: %w", name, err)
		}
	}
	_, err := f.Guest.Check()
	return err
}

// refuseChanges refuses flags that would change the plan of a resumed run.
func (f *Request) refuseChanges() error {
	for _, r := range flags() {
		// trusts needs image and cni-conf.
		if f.Given[r.name] && (r.memory == fixed || r.memory == settled) && r.readBy(f.Arena) && r.name != "image" && r.name != "cni-conf" {
			return exit.Usage("--%s: a resumed run keeps its plan; leave it out, or start a new run", r.name)
		}
	}
	return nil
}

// args returns the given flags that keep chooses, as arguments.
func (f *Request) args(keep func(r *flag) bool) []string {
	var args []string
	for _, r := range flags() {
		if !f.Given[r.name] || !r.readBy(f.Arena) || r.get == nil || !keep(&r) {
			continue
		}
		for value := range strings.SplitSeq(r.get(f), "\n") { // --set has a line each
			if value != "" {
				args = append(args, "--"+r.name+"="+text.ShellWord(value))
			}
		}
	}
	return args
}

// resumption returns the command line that resumes what the command, run or mesh, has begun.
func (f *Request) resumption(command string) string {
	again := f.args(func(r *flag) bool { return r.memory == regive })
	return strings.Join(append([]string{"cnibench", command, "--resume", text.ShellWord(f.Out)}, again...), " ")
}

// inGuest returns the command line that measures the contenders in a guest, as this request
// asks for otherwise.
func (f *Request) inGuest(contenders []string) string {
	other := []string{"contenders", "out", "cpus", "keep", "cni-conf", "cni-transport"}
	args := f.args(func(r *flag) bool { return !slices.Contains(other, r.name) })
	return strings.Join(append([]string{"cnibench run --arena", MicroVM, "--contenders", strings.Join(contenders, ",")}, args...), " ")
}

func word(at func(f *Request) *string) access {
	return access{
		get: func(f *Request) string { return *at(f) },
		set: func(f *Request, value string) error { *at(f) = value; return nil },
	}
}

// path is a word that is recorded as an absolute path if isPath says that it is one.
func path(at func(f *Request) *string, isPath func(string) bool) access {
	a := word(at)
	a.get = func(f *Request) string {
		value := *at(f)
		if abs, err := filepath.Abs(value); err == nil && value != "" && isPath(value) {
			return abs
		}
		return value
	}
	return a
}

func list(at func(f *Request) *[]string, between string) access {
	return access{
		get: func(f *Request) string { return strings.Join(*at(f), between) },
		set: func(f *Request, value string) error { *at(f) = strings.Split(value, between); return nil },
	}
}

func number(at func(f *Request) *int) access {
	return access{
		get: func(f *Request) string {
			if *at(f) == 0 {
				return ""
			}
			return strconv.Itoa(*at(f))
		},
		set: func(f *Request, value string) (err error) { *at(f), err = strconv.Atoi(value); return err },
	}
}

func numbers(at func(f *Request) *[]int) access {
	return access{
		get: func(f *Request) string {
			return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(*at(f))), ","), "[]")
		},
		set: func(f *Request, value string) error {
			*at(f) = nil
			for text := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(text)
				if err != nil {
					return err
				}
				*at(f) = append(*at(f), n)
			}
			return nil
		},
	}
}

func span(at func(f *Request) *time.Duration) access {
	return access{
		get: func(f *Request) string { return at(f).String() },
		set: func(f *Request, value string) (err error) { *at(f), err = time.ParseDuration(value); return err },
	}
}

func truth(at func(f *Request) *bool) access {
	return access{
		get: func(f *Request) string {
			if *at(f) {
				return "true"
			}
			return ""
		},
		set: func(f *Request, value string) (err error) { *at(f), err = strconv.ParseBool(value); return err },
	}
}

// onlyIf is a flag that means something only under a condition.
func onlyIf(holds func(f *Request) bool, a access) access {
	get := a.get
	a.get = func(f *Request) string {
		if !holds(f) {
			return ""
		}
		return get(f)
	}
	return a
}

// pairs writes names and values as the flag --fact takes them.
func pairs(values map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return strings.Join(all, ",")
}
