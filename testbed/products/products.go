//go:build linux

// Package products puts real pod networks on the test bed: flannel and
// Cilium, built from their published Go modules, in images made of these
// programs and of this machine's own, by the charts that the modules hold.
//
// It knows nothing of cnibench's arena and measures nothing. What of a product
// is not as published is listed in one place, the changes of its chart
// (chart.go says how they are made): they go into the mirror's index
// (mirror.go) and so into the report of whoever installs from there. Read
// install.go next.
package products

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// logf is how a step of some seconds is told.
type logf = func(format string, args ...any)

// cluster is what a product's values have to know of the cluster.
type cluster struct {
	pods netip.Prefix   // of all nodes' pods
	api  netip.AddrPort // of the API server, reachable without kube-proxy
}

// product is one pod network in one configuration.
type product struct {
	name      string
	source    source // where chart and programs come from
	namespace string
	values    func(cluster) map[string]any // for the chart, beside its changed defaults
	workloads []string                     // kind/name: all of them ready is half of "it works"
	kubeProxy bool                         // wants kube-proxy's Services
}

// source is a published module with all that becomes of it here.
type source struct {
	chart   func(context.Context) (chartFiles, error)
	images  func(context.Context, logf) ([]string, error) // tarballs
	cleanup string                                        // shell script: takes from a node what the product leaves there
}

var all = []product{
	{
		name:      "flannel-vxlan",
		source:    flannel,
		namespace: "kube-flannel",
		values:    flannelValues("vxlan"),
		workloads: []string{"daemonset/kube-flannel-ds"},
		kubeProxy: true,
	},
	{
		name:      "flannel-host-gw",
		source:    flannel,
		namespace: "kube-flannel",
		values:    flannelValues("host-gw"),
		workloads: []string{"daemonset/kube-flannel-ds"},
		kubeProxy: true,
	},
	{
		name:      "cilium",
		source:    cilium,
		namespace: "kube-system",
		values:    func(cluster) map[string]any { return nil },
		workloads: []string{"deployment/cilium-operator", "daemonset/cilium"},
		kubeProxy: true,
	},
	{
		name:      "cilium-nokproxy",
		source:    cilium,
		namespace: "kube-system",
		values:    withoutKubeProxy,
		workloads: []string{"deployment/cilium-operator", "daemonset/cilium"},
	},
	{
		name:      "cilium-native",
		source:    cilium,
		namespace: "kube-system",
		values: func(c cluster) map[string]any {
			values := withoutKubeProxy(c)
			values["routingMode"] = "native"
			values["autoDirectNodeRoutes"] = true
			values["ipv4NativeRoutingCIDR"] = c.pods.String()
			values["bpf"] = map[string]any{"masquerade": true}
			return values
		},
		workloads: []string{"deployment/cilium-operator", "daemonset/cilium"},
	},
}

// Names lists what can be installed, as cnibench's catalogue calls it.
func Names() []string {
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

func find(name string) (product, error) {
	i := slices.IndexFunc(all, func(p product) bool { return p.name == name })
	if i < 0 {
		return product{}, fmt.Errorf("no product %q here; there are %s", name, strings.Join(Names(), ", "))
	}
	return all[i], nil
}

// Images builds the images of a product, as tarballs that `ctr images import`
// takes, and returns their paths. It takes minutes the first time and nothing
// once they are in the cache.
func Images(ctx context.Context, name string, log logf) ([]string, error) {
	p, err := find(name)
	if err != nil {
		return nil, err
	}
	return p.source.images(ctx, log)
}
