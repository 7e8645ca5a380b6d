package lab

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Placement says which CPUs the client's node, the server's node and
// everything else (recorders, the runner) run on.
type Placement struct {
	Client, Server, Rest []int
}

// DefaultPlacement spreads n CPUs: the client gets the first half, the server
// the second; with four or more the first CPU is left to the rest. One CPU is
// shared by all.
func DefaultPlacement(n int) Placement {
	switch {
	case n < 2:
		return Placement{Client: []int{0}, Server: []int{0}, Rest: []int{0}}
	case n < 4:
		return Placement{Client: span(0, n/2), Server: span(n/2, n), Rest: span(0, n)}
	}
	half := (n + 1) / 2
	return Placement{Client: span(1, half), Server: span(half, n), Rest: []int{0}}
}

func span(from, to int) []int {
	var cpus []int
	for c := from; c < to; c++ {
		cpus = append(cpus, c)
	}
	return cpus
}

// ParsePlacement reads "client=0-3,server=4-7,rest=8" over the default; each
// list may hold ranges joined by "+": "client=0-2+8".
func ParsePlacement(s string, n int) (Placement, error) {
	p := DefaultPlacement(n)
	if s == "" {
		return p, nil
	}
	for _, part := range strings.Split(s, ",") {
		role, list, ok := strings.Cut(part, "=")
		cpus, err := parseCPUs(list, n)
		if !ok || err != nil {
			return p, fmt.Errorf("--cpus %q: want e.g. client=0-1,server=2-3,rest=4+5 with CPUs 0 to %d", part, n-1)
		}
		switch role {
		case "client":
			p.Client = cpus
		case "server":
			p.Server = cpus
		case "rest":
			p.Rest = cpus
		default:
			return p, fmt.Errorf("--cpus %q: the roles are client, server and rest", role)
		}
	}
	return p, nil
}

func parseCPUs(list string, n int) ([]int, error) {
	seen := map[int]bool{}
	for _, r := range strings.Split(list, "+") {
		lo, hi, isRange := strings.Cut(r, "-")
		first, err := strconv.Atoi(lo)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(hi); err != nil {
				return nil, err
			}
		}
		if first < 0 || last >= n || first > last {
			return nil, fmt.Errorf("CPU %s is not there", r)
		}
		for c := first; c <= last; c++ {
			seen[c] = true
		}
	}
	cpus := make([]int, 0, len(seen))
	for c := range seen {
		cpus = append(cpus, c)
	}
	sort.Ints(cpus)
	return cpus, nil
}

// String is the form that ParsePlacement reads.
func (p Placement) String() string {
	return fmt.Sprintf("client=%s,server=%s,rest=%s", joinCPUs(p.Client), joinCPUs(p.Server), joinCPUs(p.Rest))
}

func joinCPUs(cpus []int) string {
	texts := make([]string, len(cpus))
	for i, c := range cpus {
		texts[i] = strconv.Itoa(c)
	}
	return strings.Join(texts, "+")
}

// Shared says that client and server have a CPU in common, so that their CPU
// time can't be told apart.
func (p Placement) Shared() bool {
	for _, c := range p.Client {
		for _, s := range p.Server {
			if c == s {
				return true
			}
		}
	}
	return false
}
