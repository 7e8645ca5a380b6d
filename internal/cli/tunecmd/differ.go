package tunecmd

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/tune"
)

// Compare makes of what the nodes of a cluster said, by node, what to print of each and of all.
type Compare func(said map[string]string) Compared

// Compared is what Compare makes.
type Compared struct {
	Each     map[string]string // to print of each node
	Together string            // to print before
	Members  map[string]any    // of the JSON object of all nodes
}

// difference is a value that not all nodes have alike.
type difference struct {
	Setting string              `json:"setting"`
	Place   string              `json:"place"`
	Values  map[string][]string `json:"values"` // nodes by value
}

// comparePlans compares the nodes' plans, which they said as JSON, and prints each unless it
// stays JSON.
func comparePlans(asJSON bool) Compare {
	return func(said map[string]string) Compared {
		plans := map[string]plan{}
		out := Compared{Each: maps.Clone(said)}
		for node, text := range said {
			var p plan
			if json.Unmarshal([]byte(text), &p) == nil {
				plans[node] = p
			}
		}
		list := differences(plans)
		if asJSON {
			out.Members = map[string]any{"differences": list}
			return out
		}
		for node, p := range plans {
			var b strings.Builder
			p.print(&b)
			out.Each[node] = b.String()
		}
		var b strings.Builder
		printDifferences(&b, list)
		out.Together = b.String()
		return out
	}
}

// differences returns what the plans' machines have not alike: devices of the path, and the
// values that settings look at. What a single machine has is left out, but for devices.
func differences(plans map[string]plan) []difference {
	type key struct{ setting, place string }
	var order []key
	values := map[key]map[string]string{} // by node
	note := func(k key, node, value string) {
		if values[k] == nil {
			values[k] = map[string]string{}
			order = append(order, k)
		}
		values[k][node] = value
	}
	nodes := slices.Sorted(maps.Keys(plans))
	for _, node := range nodes {
		p := plans[node]
		for _, d := range p.Machine.Path {
			if d.Kind != veth {
				note(key{"device", d.Name}, node, d.Kind)
			}
		}
		for _, item := range p.items() {
			found := map[key][]string{}
			for _, c := range item.Changes {
				k := key{item.Setting.Name, c.String()}
				if !slices.Contains(found[k], c.From) {
					found[k] = append(found[k], c.From)
				}
			}
			for k, list := range found {
				slices.Sort(list)
				note(k, node, strings.Join(list, " and "))
			}
		}
	}
	slices.SortStableFunc(order, func(a, b key) int { return strings.Compare(a.setting+" "+a.place, b.setting+" "+b.place) })
	out := []difference{}
	for _, k := range order {
		d := difference{k.setting, k.place, map[string][]string{}}
		for _, node := range nodes {
			value, has := values[k][node]
			switch {
			case has:
				d.Values[value] = append(d.Values[value], node)
			case k.setting == "device":
				d.Values["none"] = append(d.Values["none"], node)
			}
		}
		if len(d.Values) > 1 {
			out = append(out, d)
		}
	}
	return out
}

// printDifferences prints the odd values first: those of the fewest nodes.
func printDifferences(w io.Writer, list []difference) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, "Nodes differ\n\n")
	for _, d := range list {
		values := slices.SortedFunc(maps.Keys(d.Values), func(a, b string) int {
			if n := len(d.Values[a]) - len(d.Values[b]); n != 0 {
				return n
			}
			return strings.Compare(a, b)
		})
		var words []string
		for _, v := range values {
			words = append(words, fmt.Sprintf("%s on %s", strings.Join(strings.Fields(v), " "), strings.Join(d.Values[v], ", ")))
		}
		place := d.Place
		if d.Setting == "device" {
			place = "device " + place
		}
		fmt.Fprintf(w, " %s: %s\n", place, strings.Join(words, "; "))
	}
	fmt.Fprintln(w)
}

// veth is the kind of the nodes' ends of pods' devices, whose names differ everywhere.
const veth = "veth"

// merged returns the changes with all veths of the machine as one, "veth*".
func (m machineValue) merged(changes []tune.Change) (list []tune.Change) {
	for _, c := range changes {
		device, what, ok := strings.Cut(c.Name, " ")
		if ok && slices.ContainsFunc(m.Path, func(d deviceValue) bool { return d.Kind == veth && d.Name == device }) {
			c.Name = "veth* " + what
		}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}
