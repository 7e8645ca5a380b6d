package programs

import (
	_ "embed"
	"maps"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/strictyaml"
)

//go:embed pieces.yaml
var tableFile string

type tables struct {
	Pieces, Workloads     map[string][]string
	Machine, Fetch, Guest []string
	Profiles              map[string]struct {
		Lab, Guest bool
		Programs   []string
	}
}

// table is pieces.yaml.
var table = sync.OnceValue(func() tables { return strictyaml.Must[tables]("pieces.yaml", tableFile) })

// Piece lists what the datapath piece of that name runs; ok says that the piece has a row.
func Piece(name string) (programs []string, ok bool) {
	programs, ok = table().Pieces[name]
	return programs, ok
}

// Workload lists what the workload of that name runs at its endpoints.
func Workload(name string) []string { return table().Workloads[name] }

// Workloads is the whole table of workloads.
func Workloads() map[string][]string { return maps.Clone(table().Workloads) }

// Fetch lists what brings another kernel, a package of Debian's.
func Fetch() []string { return table().Fetch }

// Profiles are the names that Profile knows, sorted.
func Profiles() []string { return slices.Sorted(maps.Keys(table().Profiles)) }
