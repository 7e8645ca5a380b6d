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
	"log"
	"slices"
	"sort"
	"strings"

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

// setting is the kind of the kernel's settings, each with its value.
const setting = "setting"

func settingText(key, value string) string { return key + " = " + value }

func cutSetting(text string) (key, value string) {
	key, value, _ = strings.Cut(text, " = ")
	return key, value
}

// Beyond lists what s has and before has not, as "kind name"; what is there
// twice counts twice. Of settings it lists those that had another value.
func (s State) Beyond(before State) []string {
	var more []string
	for _, kind := range s.kinds() {
		if kind == setting {
			more = append(more, s.changedSettings(before)...)
			continue
		}
		had := tally(before[kind])
		for _, name := range s[kind] {
			if !had.take(name) {
				more = append(more, kind+" "+name)
			}
		}
	}
	return more
}

// Gone lists what before has and s has not any more. A setting goes with its interface.
func (s State) Gone(before State) []string {
	return slices.DeleteFunc(before.Beyond(s), func(thing string) bool { return strings.HasPrefix(thing, setting+" ") })
}

func (s State) changedSettings(before State) []string {
	had := map[string]string{}
	for _, text := range before[setting] {
		key, value := cutSetting(text)
		had[key] = value
	}
	var changed []string
	for _, text := range s[setting] {
		key, value := cutSetting(text)
		if was, there := had[key]; there && was != value {
			changed = append(changed, fmt.Sprintf("setting %s: it is %s and was %s", key, value, was))
		}
	}
	return changed
}

// counts says how often each name is there.
type counts map[string]int

func tally(names []string) counts {
	c := counts{}
	for _, name := range names {
		c[name]++
	}
	return c
}

// take is whether the name is there once more.
func (c counts) take(name string) bool {
	for _, known := range []string{name, withoutDetails(name)} {
		if c[known] > 0 {
			c[known]--
			return true
		}
	}
	return false
}

// digestMark begins the digest in the name of a packet rule.
const digestMark = " #"

// withoutDetails is the name of a packet rule as journals of cnibench 0.9 have it:
// by where the rule leads alone.
func withoutDetails(name string) string {
	place, details, _ := strings.Cut(name, ": ")
	if !strings.Contains(details, digestMark) {
		return name
	}
	to, _, _ := strings.Cut(details, " ")
	return place + ": " + to
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
	// Package netlink logs attributes that it does not know: in a node's log they would hide the error.
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
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
