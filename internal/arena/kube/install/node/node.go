// Package node is the installer's side on a node: it reads what there is of
// pod networks, takes away what a recipe names, and tries connections. It runs
// in a short-lived pod, is asked by its standard input, and answers with one JSON
// line on its standard output. It knows no cluster and no recipe's steps.
// Next: state_linux.go, clean_linux.go.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/cnibench/cnibench/internal/contender"
)

// The things that a node can be asked to do.
const (
	DoState  = "state"  // say what is there
	DoClean  = "clean"  // take away the leftovers, then say what is there
	DoListen = "listen" // accept connections on Port until ended
	DoReach  = "reach"  // connect to every one of Targets
)

// Request is what the installer asks.
type Request struct {
	Do        string              `json:"do"`
	Leftovers contender.Leftovers `json:"leftovers"`
	Keep      State               `json:"keep,omitempty"`     // what was there before and so stays, whatever the leftovers name
	PodCIDR   string              `json:"pod_cidr,omitempty"` // for Leftovers.PodRoutes
	Address   string              `json:"address,omitempty"`  // the node's own, to find its uplink
	Port      uint16              `json:"port,omitempty"`     // of DoListen
	Targets   []string            `json:"targets,omitempty"`  // host:port
	Seconds   int                 `json:"seconds,omitempty"`  // limit of DoReach
	InPlace   bool                `json:"in_place,omitempty"` // stay in this mount namespace (tests)
}

// Answer is what comes back.
type Answer struct {
	State   State    `json:"state,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Uplink  string   `json:"uplink,omitempty"`  // the interface with the node's address
	Plugins []string `json:"plugins,omitempty"` // what /opt/cni/bin holds
	// KubeProxy is whether kube-proxy answers on its health port here.
	KubeProxy bool `json:"kube_proxy,omitempty"`
	// Blind are what could not be looked at, in sentences.
	Blind []string `json:"blind,omitempty"`
	// Unreached says for each target that could not be reached why.
	Unreached map[string]string `json:"unreached,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// State is what a node holds of pod networks: by kind ("link", "route",
// "file", …) the sorted names.
type State map[string][]string

// add notes one thing.
func (s State) add(kind, name string) { s[kind] = append(s[kind], name) }

// sorted brings every list into order, so that states compare.
func (s State) sorted() State {
	for _, names := range s {
		sort.Strings(names)
	}
	return s
}

// HasIPsec is whether there are IPsec states or policies.
func (s State) HasIPsec() bool { return len(s["ipsec state"])+len(s["ipsec policy"]) > 0 }

// Beyond lists what s has and before has not, as "kind name"; what is there
// twice counts twice.
func (s State) Beyond(before State) []string {
	var more []string
	for _, kind := range s.kinds() {
		had := map[string]int{}
		for _, name := range before[kind] {
			had[name]++
		}
		for _, name := range s[kind] {
			if had[name] > 0 {
				had[name]--
				continue
			}
			more = append(more, kind+" "+name)
		}
	}
	return more
}

func (s State) kinds() []string {
	kinds := make([]string, 0, len(s))
	for kind := range s {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// longestRequest is in bytes: a node that holds very much has a long list of what
// stays.
const longestRequest = 64 << 20

// Run does what the request in r asks and writes the answer to w. A request that
// failed is an answer with its Error, and an error.
func Run(ctx context.Context, r io.Reader, w io.Writer) error {
	var req Request
	if err := json.NewDecoder(io.LimitReader(r, longestRequest)).Decode(&req); err != nil {
		return fmt.Errorf("agent node: the request is no JSON: %w", err)
	}
	var ans Answer
	err := serve(ctx, req, &ans)
	if err != nil {
		ans.Error = err.Error()
	}
	line, jerr := json.Marshal(ans)
	if jerr != nil {
		return fmt.Errorf("agent node: %w", jerr)
	}
	if _, werr := fmt.Fprintf(w, "%s\n", line); werr != nil {
		return fmt.Errorf("agent node: %w", werr)
	}
	return err
}

func serve(ctx context.Context, req Request, ans *Answer) error {
	switch req.Do {
	case DoListen:
		return listen(ctx, req.Port)
	case DoReach:
		ans.Unreached = reach(ctx, req)
		return nil
	case DoState, DoClean:
		return inspect(ctx, req, ans)
	}
	return fmt.Errorf("agent node: unknown request %q", req.Do)
}
