package programs

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/strictyaml"
)

//go:embed pieces.yaml
var tableFile string

// table is pieces.yaml. The file is a part of the program: what is wrong with it is a
// panic.
var table = sync.OnceValue(func() (t struct {
	Pieces, Workloads     map[string][]string
	Machine, Fetch, Guest []string
	Profiles              map[string]struct {
		Lab, Guest bool
		Programs   []string
	}
}) {
	if err := strictyaml.Decode("pieces.yaml", strings.NewReader(tableFile), &t); err != nil {
		panic(err)
	}
	return t
})

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
