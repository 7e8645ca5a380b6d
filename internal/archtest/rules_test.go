// Package archtest holds the import rules and checks the source against them.
// It may not be imported by anything. Next: check_test.go.
package archtest

// In the rules a package is named by its folder below the module's root,
// "dir/..." is dir and everything below it, "std" is any package of the
// standard library and "libs" any package of another module.

// layer limits what the packages that match pkg import. Test files are free.
type layer struct {
	pkg   string
	but   string   // a package below pkg that has a rule of its own
	only  []string // nothing else; nil means anything
	never []string // not even if only has it
	calls []string // functions that are never called
	why   string
}

// room is what a room of the analysis may import.
func room(more ...string) []string {
	return append([]string{"std", "libs", "internal/analysis", "internal/result", "internal/stat", "internal/unit"}, more...)
}

var clock = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After"}

var layers = []layer{
	{
		pkg: "internal/unit", only: []string{"std"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "quantities are arithmetic, usable from everywhere",
	},
	{
		pkg: "internal/stat", only: []string{"std", "golang.org/x/perf/...", "github.com/aclements/go-moremath/..."}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "statistics are pure functions of numbers and know nothing of runs",
	},
	{
		pkg: "internal/atomicfile", only: []string{"std"}, never: []string{"net/..."}, calls: clock,
		why: "how files are written is below what is in them",
	},
	{
		pkg: "internal/result", only: []string{"std", "libs", "internal/atomicfile", "internal/unit"}, never: []string{"net/..."}, calls: clock,
		why: "the run model stands below all that makes or reads runs",
	},
	{
		pkg: "internal/analysis", only: []string{"std", "libs", "internal/result", "internal/stat", "internal/unit"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "the same run gives the same analysis everywhere: no disk, no network, no clock; the rooms beside it build on it and it knows none of them",
	},
	{
		pkg: "internal/analysis/findings", only: room("internal/strictyaml", "internal/text", "internal/diagnose"), never: []string{"os/...", "net/..."}, calls: clock,
		why: "findings are made from the evidence alone",
	},
	{
		pkg: "internal/mesh", only: []string{"std", "internal/stat"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "which node is to blame follows from the figures alone, so that it can be simulated",
	},
	{
		pkg: "internal/analysis/recommend", only: room("internal/text", "internal/strictyaml"), never: []string{"os/...", "net/..."}, calls: clock,
		why: "a choice is made from the evidence alone",
	},
	{
		pkg: "internal/analysis/otherruns", only: room(), never: []string{"os/...", "net/..."}, calls: clock,
		why: "what another run would give follows from reports and from the table of the project's runs",
	},
	{
		pkg: "internal/analysis/compare", only: room("internal/analysis/findings"), never: []string{"os/...", "net/..."}, calls: clock,
		why: "a comparison is made from the evidence of two runs, and from what disturbed them",
	},
	{
		pkg: "internal/trace", only: []string{"std", "libs", "internal/analysis", "internal/linux", "internal/result", "internal/sysmon"}, never: []string{"net/..."}, calls: clock,
		why: "traces are read for the analysis, which touches no disk itself",
	},
	{
		pkg: "internal/report/...", but: "internal/report/web", only: []string{"std", "libs", "internal/report/...", "internal/analysis", "internal/analysis/...", "internal/result", "internal/text", "internal/unit",
			"contenders", "studies", "internal/contender", "internal/study", "internal/published", "internal/trace"}, never: []string{"os/...", "net/...", "golang.org/x/perf/benchmath"}, calls: clock,
		why: "a report shows what the analysis says and computes no statistic; assemble.go puts it together from the run, its traces and the catalogues, and knows neither arenas nor clusters",
	},
	{
		pkg: "internal/report/web", only: []string{"internal/text", "std", "internal/analysis", "internal/report"}, never: []string{"os/..."},
		why: "the page over results reads no file and changes nothing; cli says how a run is loaded",
	},
	{
		pkg: "internal/load/...", but: "internal/load/transfer", only: []string{"std", "libs", "internal/load/...", "internal/linux", "internal/load/fdtable", "internal/result", "internal/unit", "internal/text"},
		why: "the load engine drives any address and knows no arena",
	},
	{
		pkg: "internal/load/serve", only: []string{"std", "libs", "internal/load/fdtable"},
		why: "the servers stand apart from the load engine, whose tests use them",
	},
	{
		pkg: "internal/load/stream", only: []string{"std", "libs", "internal/unit"},
		why: "bulk streams go between any two addresses and know no arena and no workload",
	},
	{
		pkg: "internal/load/slicing", only: []string{"std"}, never: []string{"os/...", "net/..."},
		why: "orders and answers of slices are lines between any two programs",
	},
	{
		pkg: "internal/load/transfer", only: []string{"std", "libs", "internal/host"},
		why: "a file transfer's side at an endpoint knows no workload and no arena",
	},
	{
		pkg: "internal/load/fdtable", only: []string{"std", "libs"},
		why: "a helper of the load engine and the servers",
	},
	{
		pkg: "internal/text", only: []string{"std", "libs"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "a helper for messages and for what is shown, usable from everywhere",
	},
	{
		pkg: "internal/linux", only: []string{"std", "libs", "internal/host"},
		why: "what the kernel has for everybody; it knows no arena",
	},
	{
		pkg: "internal/secret", only: []string{"std"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "a helper for what is published, usable from everywhere",
	},
	{
		pkg: "internal/host", only: []string{"std", "libs", "internal/text", "internal/unit"},
		why: "the seam to a machine stands below the arenas that implement it",
	},
	{
		pkg: "internal/sysmon/...", only: []string{"std", "libs", "internal/sysmon/...", "internal/host", "internal/unit", "internal/text"},
		why: "the recorder knows no arena and no workload",
	},
	{
		pkg: "internal/record/...", but: "internal/record/export", only: []string{"std", "libs", "internal/atomicfile", "internal/sysmon", "internal/host", "internal/unit"},
		why: "cnibench record runs any command on any machine: no arena, suite or run",
	},
	{
		pkg: "internal/published", only: []string{"std", "libs", "internal/analysis", "internal/text", "internal/result", "internal/stat", "internal/strictyaml", "internal/unit"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "published figures are data beside a report; nothing is measured or fetched",
	},
	{
		pkg: "internal/study", only: []string{"std", "libs", "internal/analysis", "internal/text", "internal/strictyaml"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "a study is data that chooses flags and pictures; it runs nothing",
	},
	{
		pkg: "internal/record/export", only: []string{"std", "libs", "internal/result", "internal/sysmon"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "an export merges what was recorded; cli opens the files",
	},
	{
		pkg: "internal/importer", only: []string{"std", "libs", "internal/text", "internal/result", "internal/sysmon", "internal/unit"}, never: []string{"net/..."}, calls: clock,
		why: "an import is a function of the files: no network, no clock, no arena",
	},
	{
		pkg: "internal/check", only: []string{"std", "libs", "internal/agent", "internal/arena", "internal/contender", "internal/text", "internal/result", "internal/strictyaml", "internal/sysmon", "internal/unit"}, never: []string{"os/...", "k8s.io/client-go/..."},
		why: "a check sees a network only through arena.Arena and agents, so that it serves every arena",
	},
	{
		pkg: "internal/diagnose", only: []string{"std", "internal/stat"}, never: []string{"os/...", "net/..."}, calls: clock,
		why: "the same case gives the same verdict everywhere: what a user kept is a test",
	},
	{
		pkg: "internal/arena/lab/wire", only: []string{"std", "libs", "internal/host", "internal/text", "internal/linux"},
		why: "the families of pieces build on it; the list of all pieces is above them, in internal/arena/lab/wire/all",
	},
	{
		pkg: "internal/arena", only: []string{"std", "libs", "internal/contender", "internal/host", "internal/result", "internal/unit"},
		why: "what an arena is must not depend on any arena",
	},
}

// confined names what only a few packages, or files, may import.
type confined struct {
	what []string
	but  string // a package below what that this rule leaves out
	to   []string
	why  string
}

// arenas are the concrete ones; testutil/arenatest is their conformance suite.
var arenas = []string{"lab", "guest", "kube"}

var confinements = append([]confined{
	{
		what: []string{"os/exec"},
		to: []string{
			"internal/host", "internal/arena/...",
			"internal/linux",        // starts a command that host prepared, inside a namespace
			"internal/testutil/...", // builds the program for tests
			"tools/loadbench",       // wants to know what the commands that host started have used
		},
		why: "commands are started in one place, so that process groups, errors and clean-up are the same",
	},
	{
		what: []string{"github.com/vishvananda/netlink/...", "github.com/vishvananda/netns/...", "github.com/mdlayher/netlink/...", "github.com/google/nftables/..."},
		to: []string{
			"internal/linux", "internal/arena/lab/wire/...",
			"internal/arena/lab/probe_linux.go", // tries each kernel feature in a throw-away namespace
			"internal/arena/kube/install/node",  // takes away what a product left on a cluster's node
			"internal/selftest/plant",           // faults that the self-test must find
			"internal/diagnose/collect",         // reads devices, queues and routes; sets nothing
			"tools/fillconntrack",               // plants a full table on a test bed's node
		},
		why: "the kernel's network is changed by pieces only",
	},
	{
		what: []string{"k8s.io/...", "sigs.k8s.io/...", "helm.sh/..."},
		to: []string{
			"internal/arena/kube/...",
			"internal/check", // NetworkPolicies, which it reads and judges
		},
		why: "a cluster is one arena among others",
	},
	{
		what: []string{"helm.sh/..."},
		to:   []string{"internal/arena/kube/install/..."},
		why:  "who measures a cluster as it is installs nothing",
	},
	{
		what: []string{
			"helm.sh/helm/v3/pkg/action/...", "helm.sh/helm/v3/pkg/cli/...", "helm.sh/helm/v3/pkg/kube/...",
			"helm.sh/helm/v3/pkg/registry/...", "helm.sh/helm/v3/pkg/storage/...",
		},
		why: "they bring some 300 packages: kubectl, kustomize, ORAS, drivers of databases; package install does with the cluster's own client what they do",
	},
	{
		what: []string{"k8s.io/client-go/kubernetes"},
		why:  "it links the clients of all API groups; kube.Client has those that are used",
	},
	{
		what: []string{"internal/arena/guest/vm"},
		to:   []string{".", "internal/arena/guest/...", "internal/cli", "internal/run/...", "internal/testutil/..."},
		why:  "cnibench vm boots a kernel without an arena; all others get a guest by run",
	},
	{
		what: []string{"internal/cli/..."},
		but:  "internal/cli/exit", // the errors that end the program, with their exit codes
		to:   []string{".", "internal/cli/...", "pod", "tools/man"},
		why:  "the command line is wiring: only its manual and the program for pods are made from it",
	},
	{
		what: []string{"github.com/gopacket/gopacket/..."},
		to:   []string{"tools/loadbench"},
		why:  "captures are for proofs; the product reads none",
	},
	{
		what: []string{"github.com/google/go-containerregistry/..."},
		to:   []string{"tools/..."},
		why:  "the program reads and writes no images",
	},
	{
		what: []string{"tools/..."},
		to:   []string{"tools/..."},
		why:  "programs for developers: the product does not depend on them",
	},
	{
		what: []string{"internal/archtest", "internal/testutil/..."},
		to:   []string{"internal/testutil/..."},
		why:  "they are for tests",
	},
}, append(concreteArenas(), families()...)...)

func concreteArenas() []confined {
	var list []confined
	for _, name := range arenas {
		own := "internal/arena/" + name + "/..."
		list = append(list, confined{
			what: []string{own}, but: "internal/arena/guest/vm", to: []string{own, "internal/run/...", "internal/cli/inside", "internal/testutil/...", "tools/slicebench"},
			why: "arenas are reached through arena.Arena; run (and a measurement of the lab itself) chooses one and looks after what they left, the commands inside are what they start on nodes, and arenas never import each other",
		})
	}
	return list
}

// families are the packages of datapath pieces; none imports another.
func families() []confined {
	var list []confined
	for _, name := range []string{"plain", "tunnel", "service", "ebpf", "ovs", "underlay"} {
		own := "internal/arena/lab/wire/" + name
		list = append(list, confined{
			what: []string{own}, to: []string{own, "internal/arena/lab/wire/all", "internal/arena/lab"},
			why: "families of pieces share what is in internal/arena/lab/wire, so that each can be read alone",
		})
	}
	return list
}
