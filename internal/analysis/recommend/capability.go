package recommend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Need is something that a pod network must have to be chosen.
type Need struct {
	Name, Help string

	// check and cases name the results that prove or refute the need: environment keys
	// check.CHECK.CONTENDER.CASE. cases is a prefix of CASE; "" is all cases.
	check, cases string
	// assumed says that a contender of which nothing is known meets the need.
	assumed bool
}

// lowMemory is the limit of the need low-memory, above the baseline's memory on an idle
// node. The 2019 study found 50 to 130 MB for all products but one, which took 400 MB.
const lowMemory unit.Bytes = 200 << 20

// Needs lists what can be asked for, in the order of listings. The names are
// those of Capability.
func Needs() []Need {
	return []Need{
		{Name: "policy", Help: "enforces NetworkPolicy on traffic into pods", check: "policy", cases: "ingress"},
		{Name: "egress-policy", Help: "enforces NetworkPolicy on traffic out of pods", check: "policy", cases: "egress"},
		{Name: "l7", Help: "has policies that know HTTP or DNS", check: "policy", cases: "l7"},
		{Name: "encryption", Help: "encrypts what pods send from node to node", check: "encryption"},
		{Name: "key-rotation", Help: "lets the operator replace the keys while the network runs"},
		{Name: "kube-proxy-free", Help: "does Services itself, without kube-proxy"},
		{Name: "ipv6", Help: "carries IPv6"},
		{Name: "arm64", Help: "runs on arm64"},
		{Name: "ppc64le", Help: "runs on ppc64le"},
		{Name: "s390x", Help: "runs on s390x"},
		{Name: "observability", Help: "shows what flows, or exports metrics of it"},
		{Name: "jumbo-auto", Help: "finds the MTU of the underlay by itself, a large one too", check: "mtu"},
		{Name: "low-memory", Help: "uses at most " + lowMemory.String() + " more on an idle node than the baseline (measured; needs real nodes and an idle step)"},
		{Name: analysis.Active, Help: "is maintained; always asked for", assumed: true},
		{Name: analysis.Whole, Help: "is a product for clusters, no bare datapath of the kernel; always asked for", assumed: true},
	}
}

// NeedNames returns the names of Needs.
func NeedNames() []string {
	var names []string
	for _, n := range Needs() {
		names = append(names, n.Name)
	}
	return names
}

// Capabilities returns those of the catalogue and of the run's checks. The result of a
// check replaces the catalogue's.
func Capabilities(rec *result.Record, catalogue []analysis.Capability) []analysis.Capability {
	e := &analysis.Evidence{Facts: analysis.Facts{Run: &rec.Run, Opt: analysis.Options{}.Complete(&rec.Run.Plan)}}
	list := slices.Clone(catalogue)
	for _, found := range append(proveCapabilities(e), jumbo(e)...) {
		i := slices.IndexFunc(list, func(c analysis.Capability) bool { return c.Contender == found.Contender && c.Name == found.Name })
		if i < 0 {
			list = append(list, found)
			continue
		}
		// The catalogue's value, such as wireguard, says more than yes.
		if found.Value == "yes" && list[i].Value != "no" {
			found.Value = list[i].Value
		}
		list[i] = found
	}
	return list
}

// proveCapabilities returns the capabilities that the checks of a run prove or refute. A single case
// that failed, or was seen plain, gives "no".
func proveCapabilities(e *analysis.Evidence) []analysis.Capability {
	var list []analysis.Capability
	for _, found := range e.Checks() {
		if found.Word != "pass" && found.Word != "fail" && found.Word != "plain" {
			continue
		}
		for _, need := range Needs() {
			if need.check != found.Check || !strings.HasPrefix(found.Case, need.cases) {
				continue
			}
			c := analysis.Capability{Contender: found.Contender, Name: need.Name, Value: "yes", Source: "check", Detail: found.Case + ": " + found.Word}
			if found.Word != "pass" {
				c.Value = "no"
			}
			i := slices.IndexFunc(list, func(o analysis.Capability) bool { return o.Contender == c.Contender && o.Name == c.Name })
			switch {
			case i < 0:
				list = append(list, c)
			case c.Value == "no" && list[i].Value != "no":
				list[i] = c
			}
		}
	}
	return list
}

// jumbo returns whether contenders meet jumbo-auto, from the pods' MTU on an underlay with
// an MTU above the usual one.
func jumbo(e *analysis.Evidence) []analysis.Capability {
	const usual = 1500
	var list []analysis.Capability
	if analysis.SharesMemory(e.Run.Arena) {
		return nil // the lab itself sets the pods' MTU
	}
	contenders, found := e.Packets()
	under := e.UnderlayMTU(found)
	for _, c := range contenders {
		pod := found[c].Effective()
		if pod == 0 || under <= usual || c == e.Run.Baseline {
			continue
		}
		x := analysis.Capability{Contender: c, Name: "jumbo-auto", Value: "yes", Source: "check", Detail: fmt.Sprintf("pods got an MTU of %d on an underlay of %d", pod, under)}
		if float64(under-pod-e.Overhead(c)) > analysis.MaxWaste*float64(under) {
			x.Value = "no"
		}
		list = append(list, x)
	}
	return list
}

// memoryCapabilities returns whether contenders meet low-memory, from the run's idle steps.
// It returns nil for the lab, which does not run the products' agents.
func memoryCapabilities(e *analysis.Evidence) []analysis.Capability {
	var list []analysis.Capability
	if analysis.SharesMemory(e.Run.Arena) {
		return nil
	}
	for _, at := range e.Keys {
		if at.Metric != result.MemoryOverhead {
			continue
		}
		for _, contender := range e.OrderContenders(e.Figures[at]) {
			over := e.Headline(at, contender)
			c := analysis.Capability{
				Contender: contender, Name: "low-memory", Value: "yes", Source: "measured",
				Detail: fmt.Sprintf("%s over %s when idle", unit.Format(over, "bytes"), e.Run.Baseline),
			}
			if over > float64(lowMemory) {
				c.Value = "no"
			}
			list = append(list, c)
		}
	}
	return list
}
