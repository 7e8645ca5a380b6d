// Package node is the installer's part that runs on a node: it reads the state of pod
// networks, removes what a recipe names, and tries connections. It runs in a short-lived
// pod, reads a request from its standard input, and answers with one JSON line on its
// standard output. It knows no cluster and no recipe's steps. Next: state_linux.go,
// clean_linux.go.
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

// The kinds of requests.
const (
	DoState  = "state"  // report the state
	DoClean  = "clean"  // remove the leftovers, then report the state
	DoListen = "listen" // accept connections on Port until the context ends
	DoReach  = "reach"  // connect to each of Targets
)

// Request is a request of the installer.
type Request struct {
	Do        string              `json:"do"`
	Leftovers contender.Leftovers `json:"leftovers"`
	Keep      State               `json:"keep,omitempty"`     // the state before the installation, which DoClean keeps
	PodCIDR   string              `json:"pod_cidr,omitempty"` // for Leftovers.PodRoutes
	Address   string              `json:"address,omitempty"`  // the node's own, to find its uplink
	Port      uint16              `json:"port,omitempty"`     // of DoListen
	Targets   []string            `json:"targets,omitempty"`  // host:port
	Seconds   int                 `json:"seconds,omitempty"`  // limit of DoReach
	InPlace   bool                `json:"in_place,omitempty"` // stay in this mount namespace (tests)
}

// Answer is the answer to a Request.
type Answer struct {
	State   State    `json:"state,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Uplink  string   `json:"uplink,omitempty"`  // the interface with the node's address
	Plugins []string `json:"plugins,omitempty"` // the files in /opt/cni/bin
	// KubeProxy says whether kube-proxy answers on its health port on this node.
	KubeProxy bool `json:"kube_proxy,omitempty"`
	// Blind are sentences on parts of the state that could not be read.
	Blind []string `json:"blind,omitempty"`
	// Unreached says why a target could not be reached, by target.
	Unreached map[string]string `json:"unreached,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// State lists what a node has of pod networks: the sorted names of things, by kind
// ("interface", "route", "file", …).
type State map[string][]string

func (s State) add(kind, name string) { s[kind] = append(s[kind], name) }

// sortLists sorts every list, so that states can be compared.
func (s State) sortLists() State {
	for _, names := range s {
		sort.Strings(names)
	}
	return s
}

// HasIPsec reports whether there are IPsec states or policies.
func (s State) HasIPsec() bool { return len(s["ipsec state"])+len(s["ipsec policy"]) > 0 }

// setting is the kind of the kernel's settings, whose names contain their values.
const setting = "setting"

func settingText(key, value string) string { return key + " = " + value }

func cutSetting(text string) (key, value string) {
	key, value, _ = strings.Cut(text, " = ")
	return key, value
}

// ListAdded lists the things that s has and before lacks, as "kind name", and the settings
// whose value has changed. A thing that s has once more than before is listed once.
func (s State) ListAdded(before State) []string {
	var added []string
	for _, kind := range s.kinds() {
		if kind == setting {
			added = append(added, s.listChangedSettings(before)...)
			continue
		}
		old := tally(before[kind])
		for _, name := range s[kind] {
			if !old.take(name) {
				added = append(added, kind+" "+name)
			}
		}
	}
	return added
}

// ListLost lists the things that before has and s lacks, without settings: these disappear
// with their interface.
func (s State) ListLost(before State) []string {
	return slices.DeleteFunc(before.ListAdded(s), func(thing string) bool { return strings.HasPrefix(thing, setting+" ") })
}

// setTo returns the setting's value; "" if the state does not have it.
func (s State) setTo(key string) string {
	for _, text := range s[setting] {
		if known, value := cutSetting(text); known == key {
			return value
		}
	}
	return ""
}

func (s State) listChangedSettings(before State) []string {
	old := map[string]string{}
	for _, text := range before[setting] {
		key, value := cutSetting(text)
		old[key] = value
	}
	var changed []string
	for _, text := range s[setting] {
		key, value := cutSetting(text)
		if was, existed := old[key]; existed && was != value {
			changed = append(changed, fmt.Sprintf("setting %s: it is %s and was %s", key, value, was))
		}
	}
	return changed
}

// counts holds how often each name occurs.
type counts map[string]int

func tally(names []string) counts {
	c := counts{}
	for _, name := range names {
		c[name]++
	}
	return c
}

// take reports whether the name is left, and takes it out once.
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

// withoutDetails returns the name of a packet rule in journals of cnibench 0.9: where the
// rule leads, and nothing else.
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

// longestRequest limits a request, bytes. Keep can be long.
const longestRequest = 64 << 20

// Run carries out the request in r and writes the answer to w. If that fails, Run returns
// the error, which is also in the answer.
func Run(ctx context.Context, r io.Reader, w io.Writer) error {
	var req Request
	if err := json.NewDecoder(io.LimitReader(r, longestRequest)).Decode(&req); err != nil {
		return fmt.Errorf("agent node: the request is no JSON: %w", err)
	}
	var ans Answer
	// Package netlink logs unknown attributes, which would hide the error in the output.
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
