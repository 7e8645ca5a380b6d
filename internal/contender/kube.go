package contender

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/text"
)

// The version sets that a recipe can have.
const (
	Versions2024   = "2024"   // what the 2024 study installed
	VersionsLatest = "latest" // what was current when somebody looked
	// VersionsModules is what the project's test bed builds from Go modules, for products
	// that it can't build in another version.
	VersionsModules = "modules"
)

// VersionSets lists them; the first is the default.
func VersionSets() []string { return []string{Versions2024, VersionsLatest, VersionsModules} }

// How far a recipe has been tried.
const (
	CheckedRun      = "run"
	CheckedRendered = "rendered"
	CheckedWritten  = "written"
)

// Kube is the recipe that puts the product on a cluster, or why there is none.
// Text values may hold placeholders, "${pod-cidr}"; Placeholders lists them.
type Kube struct {
	None   string `yaml:"none,omitempty"`   // why there is no recipe
	Remedy string `yaml:"remedy,omitempty"` // what the user can do instead
	// Checked says how far the recipe has been tried: "run" end to end on the
	// test bed, "rendered" from the published files, or only "written".
	Checked string `yaml:"checked,omitempty"`
	// Versions has an entry for each set that the recipe can install.
	Versions map[string]KubeVersion `yaml:"versions,omitempty"`
	// KubeProxy is "off" if kube-proxy must not run beside the product.
	KubeProxy string `yaml:"kube-proxy,omitempty"`
	// CNIPlugins are the standard plugins that the product expects in
	// /opt/cni/bin of each node and does not bring.
	CNIPlugins []string  `yaml:"cni-plugins,omitempty"`
	Notes      []string  `yaml:"notes,omitempty"` // what a reader of the results must know
	Steps      []Step    `yaml:"steps,omitempty"` // done in order, undone in reverse
	Leftovers  Leftovers `yaml:"leftovers,omitempty"`
}

// KubeVersion is one version of the product.
type KubeVersion struct {
	Version  string `yaml:"version"`             // as the chart's version or the tag is written
	Source   string `yaml:"source"`              // where that is from
	LookedUp string `yaml:"looked-up,omitempty"` // the day on which it was current, YYYY-MM-DD
	// Unverified says what could not be checked when it was written down.
	Unverified string `yaml:"unverified,omitempty"`
}

// Step is one thing to do to the cluster: exactly one of its actions.
type Step struct {
	Only       []string       `yaml:"only,omitempty"` // the version sets that it is for; none: all
	Namespace  *KubeNamespace `yaml:"namespace,omitempty"`
	NodeLabels *NodeLabels    `yaml:"node-labels,omitempty"`
	Chart      *Chart         `yaml:"chart,omitempty"`
	Manifest   *Manifest      `yaml:"manifest,omitempty"`
	Object     RawObject      `yaml:"object,omitempty"`
	Secret     *Secret        `yaml:"secret,omitempty"`
	Patch      *Patch         `yaml:"patch,omitempty"`
	Wait       *Wait          `yaml:"wait,omitempty"`
	Farewell   *Farewell      `yaml:"farewell,omitempty"`
}

// RawObject is one Kubernetes object as it is.
type RawObject map[string]any

// KubeNamespace is a namespace to make.
type KubeNamespace struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels,omitempty"`
}

// NodeLabels labels nodes: "all", or "control-plane": those with that role,
// else the first node.
type NodeLabels struct {
	Nodes  string            `yaml:"nodes"`
	Labels map[string]string `yaml:"labels"`
}

// Chart is a Helm chart. SHA256 is the digest of its archive by version set;
// a version without one is installed unpinned, and the log says so.
type Chart struct {
	Repo      string            `yaml:"repo"`
	Name      string            `yaml:"name"`
	Release   string            `yaml:"release"`
	Namespace string            `yaml:"namespace"`
	SHA256    map[string]string `yaml:"sha256,omitempty"`
	Values    map[string]any    `yaml:"values,omitempty"`
}

// Manifest is a file of Kubernetes objects.
type Manifest struct {
	URL     string            `yaml:"url"`
	SHA256  map[string]string `yaml:"sha256,omitempty"`
	Replace []Replacement     `yaml:"replace,omitempty"`
}

// Replacement replaces every Old by another text. It is an error if there is no Old.
type Replacement struct {
	Old string `yaml:"old"`
	New string `yaml:"new"`
}

// Secret is a Secret with one generated value: "psk", 36 random bytes in
// base64; "cilium-ipsec", a key for rfc4106(gcm(aes)) as Cilium writes it.
type Secret struct {
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
	Key       string `yaml:"key"`
	Generate  string `yaml:"generate"`
}

// Patch changes an object that another step made: a merge patch, or a
// strategic one for kinds of Kubernetes itself. It is undone with the object.
type Patch struct {
	Of        Object         `yaml:"of"`
	Strategic bool           `yaml:"strategic,omitempty"`
	Patch     map[string]any `yaml:"patch"`
}

// Object names an object of the cluster.
type Object struct {
	APIVersion string `yaml:"api-version"`
	Kind       string `yaml:"kind"`
	Namespace  string `yaml:"namespace,omitempty"`
	Name       string `yaml:"name"`
}

// Wait waits for an object, or for an annotation on every node. For is
// "exists" (the default), "rollout" (a DaemonSet or Deployment has all its
// pods ready) or the name of a condition that must be True.
type Wait struct {
	Of             Object `yaml:"of,omitempty"`
	For            string `yaml:"for,omitempty"`
	NodeAnnotation string `yaml:"node-annotation,omitempty"`
}

// Farewell is a command that runs in the product's own pods before they are removed.
// The objects After go first, one after the other, with their pods: what has pods that the
// product alone can take down, and what would undo the command.
type Farewell struct {
	After     []Object `yaml:"after,omitempty"`
	Namespace string   `yaml:"namespace"`
	Selector  string   `yaml:"selector"`
	Container string   `yaml:"container"`
	Command   []string `yaml:"command"`
}

// Leftovers are what the product leaves behind and the clean-up takes away.
// Names of interfaces and files may hold the patterns of path.Match.
type Leftovers struct {
	Interfaces      []string `yaml:"interfaces,omitempty" json:"interfaces,omitempty"`
	Files           []string `yaml:"files,omitempty" json:"files,omitempty"`                       // absolute; a folder goes with all in it
	Mounts          []string `yaml:"mounts,omitempty" json:"mounts,omitempty"`                     // mount points
	Chains          []string `yaml:"chains,omitempty" json:"chains,omitempty"`                     // prefixes of chains of iptables, with the rules that lead there
	Comments        []string `yaml:"comments,omitempty" json:"comments,omitempty"`                 // how the comments of its rules in other chains begin; rules about its interfaces and sets go, too
	Rules           []Rule   `yaml:"rules,omitempty" json:"rules,omitempty"`                       // its rules in other chains that name nothing of the product
	Tables          []string `yaml:"tables,omitempty" json:"tables,omitempty"`                     // nftables tables
	Sets            []string `yaml:"sets,omitempty" json:"sets,omitempty"`                         // prefixes of ipsets
	Filters         []string `yaml:"filters,omitempty" json:"filters,omitempty"`                   // prefixes of eBPF filters at tc
	RouteTables     []int    `yaml:"route-tables,omitempty" json:"route-tables,omitempty"`         // with the rules that lead there
	PodRoutes       bool     `yaml:"pod-routes,omitempty" json:"pod-routes,omitempty"`             // routes to other nodes' pods in the main table
	XFRM            bool     `yaml:"xfrm,omitempty" json:"xfrm,omitempty"`                         // IPsec states and policies
	IPVS            bool     `yaml:"ipvs,omitempty" json:"ipvs,omitempty"`                         // virtual servers
	OVS             bool     `yaml:"ovs,omitempty" json:"ovs,omitempty"`                           // Open vSwitch of the kernel, which its farewell takes away, whoever made it
	CRDs            []string `yaml:"crds,omitempty" json:"crds,omitempty"`                         // API groups whose definitions the product makes itself
	Namespaces      []string `yaml:"namespaces,omitempty" json:"namespaces,omitempty"`             // that the product makes itself
	NodeAnnotations []string `yaml:"node-annotations,omitempty" json:"node-annotations,omitempty"` // prefixes of labels, annotations and taints of nodes
}

// Rule describes packet rules that name nothing of their product. They are told from an
// operator's own only by having come after the installation, so that they stay on a node
// that nobody had looked at before.
type Rule struct {
	Target string `yaml:"target" json:"target"`                 // in upper or lower case
	Port   string `yaml:"port,omitempty" json:"port,omitempty"` // the one port to which packets go, "udp/6081"; "": any
}

var rulePort = regexp.MustCompile(`^(tcp|udp)/[1-9][0-9]{0,4}$`)

// Placeholders returns the facts of a cluster that a recipe can ask for.
func Placeholders() []string {
	return []string{
		"version",           // of the version set
		"pod-cidr",          // the pods' network
		"service-cidr",      // the Services' network
		"api-host",          // an address of the API server that needs no kube-proxy
		"api-port",          // and its port
		"control-plane-ips", // the control plane nodes' addresses, with commas
		"uplink",            // the nodes' interface on the underlay
		// Of the segment whose addresses pods get, which only the user knows:
		"underlay-cidr",      // its range
		"underlay-gateway",   // the address of its gateway
		"underlay-taken",     // addresses that pods must not get, a..b,c
		"underlay-interface", // each node's interface that is plugged into it
		"underlay-vlan",      // its VLAN, 0 for none
	}
}

var placeholder = regexp.MustCompile(`\$\{([a-z0-9-]*)\}`)

// Expand replaces the placeholders in text; fact says what each stands for.
func Expand(text string, fact func(name string) (string, error)) (string, error) {
	var failed error
	out := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		value, err := fact(match[2 : len(match)-1])
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return out, failed
}

// ExpandAll returns a copy of a tree of maps and lists in which every text is expanded,
// as by Expand.
func ExpandAll(tree any, fact func(name string) (string, error)) (any, error) {
	switch v := tree.(type) {
	case string:
		return Expand(v, fact)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			expanded, err := ExpandAll(value, fact)
			if err != nil {
				return nil, err
			}
			out[key] = expanded
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			expanded, err := ExpandAll(value, fact)
			if err != nil {
				return nil, err
			}
			out[i] = expanded
		}
		return out, nil
	}
	return tree, nil
}

// StepsOf returns the steps of a version set, in order.
func (k *Kube) StepsOf(set string) []Step {
	var steps []Step
	for _, s := range k.Steps {
		if len(s.Only) == 0 || slices.Contains(s.Only, set) {
			steps = append(steps, s)
		}
	}
	return steps
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (k *Kube) check(p *problems) {
	switch {
	case k.None != "" && len(k.Steps)+len(k.Versions) > 0:
		p.add("kube: it has steps and kube.none; keep one")
		return
	case k.None != "":
		p.want(k.Remedy != "", "kube.remedy: say what the user can do instead")
		return
	case k.Remedy != "":
		p.add("kube.remedy belongs to kube.none")
	case len(k.Steps) == 0:
		p.add("kube: it has neither kube.steps nor the reason kube.none")
	}
	p.want(len(k.Versions) > 0 || len(k.Steps) == 0, "kube.versions is missing")
	for set, v := range k.Versions {
		p.oneOf("kube.versions", set, VersionSets())
		p.want(v.Version != "", "kube.versions."+set+".version is missing")
		p.want(v.Source != "", "kube.versions."+set+".source: say where the version is from")
		if set == VersionsLatest || v.LookedUp != "" {
			_, err := time.Parse(time.DateOnly, v.LookedUp)
			p.want(err == nil, "kube.versions."+set+".looked-up: want the day on which it was current, YYYY-MM-DD")
		}
	}
	p.oneOf("kube.checked", k.Checked, []string{CheckedRun, CheckedRendered, CheckedWritten})
	if k.KubeProxy != "" {
		p.oneOf("kube.kube-proxy", k.KubeProxy, []string{"off"})
	}
	for _, s := range k.Steps {
		s.check(p)
	}
	k.Leftovers.check(p)
}

// Action is what a step does: a *KubeNamespace, *NodeLabels, *Chart, *Manifest,
// RawObject, *Secret, *Patch, *Wait or *Farewell.
type Action interface{ check(p *problems) }

// actions returns the actions that the step has; a correct step has exactly one.
func (s *Step) actions() []Action {
	return slices.DeleteFunc(
		[]Action{s.Namespace, s.NodeLabels, s.Chart, s.Manifest, s.Object, s.Secret, s.Patch, s.Wait, s.Farewell},
		func(a Action) bool { return reflect.ValueOf(a).IsNil() })
}

// Action returns what the step does.
func (s *Step) Action() Action { return s.actions()[0] }

func (s *Step) check(p *problems) {
	for _, set := range s.Only {
		p.oneOf("kube.steps.only", set, VersionSets())
	}
	actions := s.actions()
	if len(actions) != 1 {
		p.add("kube.steps: a step has exactly one of namespace, node-labels, chart, manifest, object, secret, patch, wait, farewell")
		return
	}
	actions[0].check(p)
}

func (n *KubeNamespace) check(p *problems) {
	p.want(n.Name != "", "kube.steps.namespace.name is missing")
}

func (l *NodeLabels) check(p *problems) {
	p.oneOf("kube.steps.node-labels.nodes", l.Nodes, []string{"all", "control-plane"})
	p.want(len(l.Labels) > 0, "kube.steps.node-labels.labels is missing")
}

func (c *Chart) check(p *problems) {
	p.want(c.Repo != "" && c.Name != "" && c.Release != "" && c.Namespace != "", "kube.steps.chart: repo, name, release and namespace are all needed")
	p.sums("kube.steps.chart.sha256", c.SHA256)
	p.placeholders("kube.steps.chart.values", c.Values)
}

func (m *Manifest) check(p *problems) {
	p.want(strings.HasPrefix(m.URL, "https://"), "kube.steps.manifest.url: want an https address")
	p.placeholders("kube.steps.manifest.url", m.URL)
	p.sums("kube.steps.manifest.sha256", m.SHA256)
	for _, r := range m.Replace {
		p.want(r.Old != "", "kube.steps.manifest.replace.old is missing")
		p.placeholders("kube.steps.manifest.replace.new", r.New)
	}
}

func (o RawObject) check(p *problems) {
	_, version := o["apiVersion"].(string)
	_, kind := o["kind"].(string)
	p.want(version && kind, "kube.steps.object: apiVersion and kind are both needed")
	p.placeholders("kube.steps.object", map[string]any(o))
}

func (s *Secret) check(p *problems) {
	p.want(s.Namespace != "" && s.Name != "" && s.Key != "", "kube.steps.secret: namespace, name and key are all needed")
	p.oneOf("kube.steps.secret.generate", s.Generate, []string{"psk", "cilium-ipsec"})
}

func (c *Patch) check(p *problems) {
	p.object("kube.steps.patch.of", c.Of)
	p.want(len(c.Patch) > 0, "kube.steps.patch.patch is missing")
	p.placeholders("kube.steps.patch.patch", c.Patch)
}

func (w *Wait) check(p *problems) {
	if w.NodeAnnotation == "" {
		p.object("kube.steps.wait.of", w.Of)
		return
	}
	p.want(w.Of == Object{} && w.For == "", "kube.steps.wait: it has an object and node-annotation; keep one")
}

func (f *Farewell) check(p *problems) {
	p.want(f.Namespace != "" && f.Selector != "" && f.Container != "" && len(f.Command) > 0, "kube.steps.farewell: namespace, selector, container and command are all needed")
	for _, o := range f.After {
		p.object("kube.steps.farewell.after", o)
	}
}

// Check returns an error if the leftovers name more than what one product leaves, such as a
// top folder.
func (l *Leftovers) Check() error {
	p := &problems{}
	l.check(p)
	return errors.Join(p.errs...)
}

func (l *Leftovers) check(p *problems) {
	for _, file := range append(slices.Clone(l.Files), l.Mounts...) {
		depth := strings.Count(strings.TrimSuffix(file, "/"), "/")
		p.want(strings.HasPrefix(file, "/") && depth >= 2 && !strings.Contains(file, ".."), "kube.leftovers: "+file+": want an absolute path at least two folders deep")
	}
	for _, prefix := range slices.Concat(l.Interfaces, l.Chains, l.Comments, l.Sets, l.Filters) {
		p.want(len(strings.TrimRight(prefix, "*")) >= 3, "kube.leftovers: "+prefix+" is too short to name what one product leaves")
	}
	for _, r := range l.Rules {
		p.want(r.Target != "" && (r.Port == "" || rulePort.MatchString(r.Port)), "kube.leftovers.rules: want a target, and a port such as udp/6081 or none")
	}
	for _, table := range l.RouteTables {
		p.want(table > 0 && (table < 253 || table > 255), "kube.leftovers.route-tables: the kernel's own tables stay")
	}
}

func (p *problems) object(key string, o Object) {
	p.want(o.APIVersion != "" && o.Kind != "" && o.Name != "", key+": api-version, kind and name are all needed")
}

func (p *problems) sums(key string, sums map[string]string) {
	for set, sum := range sums {
		p.oneOf(key, set, VersionSets())
		p.want(sha256Form.MatchString(sum), key+"."+set+": want 64 hexadecimal digits")
	}
}

// placeholders finds placeholders whose facts no cluster has.
func (p *problems) placeholders(key string, tree any) {
	_, err := ExpandAll(tree, func(name string) (string, error) {
		if !slices.Contains(Placeholders(), name) {
			return "", text.Unknown("placeholder", name, Placeholders())
		}
		return "", nil
	})
	if err != nil {
		p.add(key + ": " + err.Error())
	}
}
