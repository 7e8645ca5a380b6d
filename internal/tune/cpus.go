package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/linux"
)

// Topology lists the online CPUs.
type Topology struct {
	CPUs []CPU // ordered by number
}

// CPU is one hardware thread.
type CPU struct {
	ID    int
	Node  int  // NUMA node
	First bool // the lowest-numbered thread of its core
}

// maxCPUs bounds the CPU numbers in a list; the kernel's own limit is 8192.
const maxCPUs = 1 << 14

// readTopology reads /sys/devices/system. A machine without NUMA has one node; without SMT
// every thread is the first of its core.
func readTopology(files readFS) (*Topology, error) {
	const cpus, nodes = "/sys/devices/system/cpu", "/sys/devices/system/node"
	text, err := files.ReadFile(cpus + "/online")
	if err != nil {
		return nil, fmt.Errorf("read the list of CPUs: %w", err)
	}
	online, err := linux.ParseCPUs(string(text), maxCPUs-1)
	if err != nil {
		return nil, fmt.Errorf("%s/online: %w", cpus, err)
	}
	if len(online) == 0 {
		return nil, fmt.Errorf("%s/online names no CPU", cpus)
	}
	nodeOf := map[int]int{}
	names, err := files.ReadDir(nodes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
		if err != nil || !strings.HasPrefix(name, "node") {
			continue
		}
		list, err := readCPUList(files, nodes+"/"+name+"/cpulist")
		if err != nil {
			return nil, err
		}
		for _, cpu := range list {
			nodeOf[cpu] = number
		}
	}
	t := &Topology{}
	for _, id := range online {
		siblings, err := readCPUList(files, fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", cpus, id))
		if errors.Is(err, fs.ErrNotExist) {
			siblings, err = []int{id}, nil
		}
		if err != nil {
			return nil, err
		}
		first := !slices.ContainsFunc(siblings, func(other int) bool { return other < id && slices.Contains(online, other) })
		t.CPUs = append(t.CPUs, CPU{ID: id, Node: nodeOf[id], First: first})
	}
	return t, nil
}

func readCPUList(files readFS, path string) ([]int, error) {
	text, err := files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := linux.ParseCPUs(string(text), maxCPUs-1)
	if err != nil {
		return nil, fmt.Errorf("%s: CPU list: %w", path, err)
	}
	return list, nil
}

// Nodes returns the NUMA nodes that have CPUs, in order.
func (t *Topology) Nodes() []int {
	var nodes []int
	for _, c := range t.CPUs {
		if !slices.Contains(nodes, c.Node) {
			nodes = append(nodes, c.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// Cores returns the first thread of each core.
func (t *Topology) Cores() []int {
	return t.pick(func(c CPU) bool { return c.First })
}

// CoresOn returns the first thread of each core of the node.
func (t *Topology) CoresOn(node int) []int {
	return t.pick(func(c CPU) bool { return c.First && c.Node == node })
}

// On returns all threads of the node.
func (t *Topology) On(node int) []int {
	return t.pick(func(c CPU) bool { return c.Node == node })
}

func (t *Topology) pick(want func(CPU) bool) []int {
	var ids []int
	for _, c := range t.CPUs {
		if want(c) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// FormatMask formats the CPUs as the kernel does in its files: groups of 32 bits, the
// highest first. like is the file's current text; the mask has as many digits and groups,
// or more if the CPUs need them.
func FormatMask(cpus []int, like string) string {
	shape := strings.Split(strings.TrimSpace(like), ",")
	width := len(shape[0]) // hex digits of the first group
	groups := len(shape)
	for _, cpu := range cpus {
		for cpu >= 32*(groups-1)+4*width {
			if width < 8 {
				width = 8
			} else {
				groups++
			}
		}
	}
	words := make([]uint32, groups)
	for _, cpu := range cpus {
		words[groups-1-cpu/32] |= 1 << (cpu % 32)
	}
	parts := make([]string, groups)
	for i, w := range words {
		digits := 8
		if i == 0 {
			digits = width
		}
		parts[i] = fmt.Sprintf("%0*x", digits, w)
	}
	return strings.Join(parts, ",")
}
