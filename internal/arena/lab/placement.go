package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/linux"
)

// Placement says which CPUs the client's node, the server's node and
// everything else (recorders, the runner) run on.
type Placement struct {
	Client, Server, Rest []int
}

// DefaultPlacement gives the client the first half of the CPUs and the server
// the second half. Of four or more CPUs, the first is for the rest only.
func DefaultPlacement(cpus []int) Placement {
	n := len(cpus)
	switch {
	case n < 2:
		return Placement{Client: cpus, Server: cpus, Rest: cpus}
	case n < 4:
		return Placement{Client: cpus[:n/2], Server: cpus[n/2:], Rest: cpus}
	}
	half := (n + 1) / 2
	return Placement{Client: cpus[1:half], Server: cpus[half:], Rest: cpus[:1]}
}

// ParsePlacement reads a placement on the CPUs, e.g. "client=0-2+8,server=4-7".
// A role that s does not name keeps its default.
func ParsePlacement(s string, cpus []int) (Placement, error) {
	p := DefaultPlacement(cpus)
	if s == "" {
		return p, nil
	}
	for _, part := range strings.Split(s, ",") {
		role, list, ok := strings.Cut(part, "=")
		chosen, err := parseCPUs(list, cpus)
		if !ok || err != nil {
			if !ok {
				err = errors.New("no = between role and CPUs")
			}
			return p, fmt.Errorf("--cpus %q: %w; give e.g. client=0-1,server=2-3,rest=4+5, from the CPUs %s", part, err, joinCPUs(cpus))
		}
		switch role {
		case "client":
			p.Client = chosen
		case "server":
			p.Server = chosen
		case "rest":
			p.Rest = chosen
		default:
			return p, fmt.Errorf("--cpus %q: unknown role; the roles are client, server and rest", role)
		}
	}
	return p, nil
}

func parseCPUs(list string, cpus []int) ([]int, error) {
	if list == "" || len(cpus) == 0 {
		return nil, errors.New("no CPU is named")
	}
	chosen, err := linux.ParseCPUs(strings.ReplaceAll(list, "+", ","), slices.Max(cpus))
	if err != nil {
		return nil, err
	}
	for _, c := range chosen {
		if !slices.Contains(cpus, c) {
			return nil, fmt.Errorf("this process may not use CPU %d", c)
		}
	}
	return chosen, nil
}

// String returns the form that ParsePlacement reads.
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
