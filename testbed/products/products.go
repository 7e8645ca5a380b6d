//go:build linux

// Package products puts real pod networks on the test bed, built from their
// published Go modules, in images made of these programs and of this machine's own,
// by the charts and manifests that the modules hold. Each source is one file.
//
// It knows nothing of cnibench's arena and measures nothing. What of a product
// is not as published is listed in one place, the changes of its files
// (chart.go says how they are made): they go into the mirror's index
// (mirror.go) and so into the report of whoever installs from there. Read
// install.go next.
package products

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// logf is how a step of some seconds is told.
type logf = func(format string, args ...any)

// cluster is what a product's values have to know of the cluster.
type cluster struct {
	pods netip.Prefix   // of all nodes' pods
	api  netip.AddrPort // of the API server, reachable without kube-proxy

	services netip.Prefix // of Services
	first    netip.Addr   // of the first node
	slow     int          // how many times slower than usual the machine is
}

// product is one pod network in one configuration.
type product struct {
	name       string
	namespace  string
	values     func(cluster) map[string]any // for the chart, beside its changed defaults
	manifest   string                       // where there is no chart: the published one's file name
	edits      func(cluster) []edit         // of the manifest
	workloads  []string                     // kind/name, in the order in which they go: all of them ready is half of "it works"
	label      string                       // key=value, of the first node: where its databases run
	kubeProxy  bool                         // wants kube-proxy's Services
	policies   bool                         // enforces NetworkPolicies
	prepare    func(node int) string        // shell script: what an operator does on a node first; nodes count from 1
	annotation string                       // key=value, of every node, after that
	modules    []string                     // of the kernel, that not every kernel has
	wire       string                       // what carries pods' packets between nodes: tcp (themselves), ipip or udp and its port
	encrypted  bool                         // nobody reads them there
	link       string                       // "", or bed.SecondLink: by which of a node's links they leave
}

// source is a published module with all that becomes of it here.
type source struct {
	name     string
	files    func(context.Context) (published, error)
	images   func(context.Context, logf) ([]string, error) // tarballs
	named    []string                                      // the published names that its images have here; the others are localhost/…
	network  string                                        // its configuration's name in /etc/cni/net.d
	cleanup  string                                        // shell script: takes from a node what the product leaves there
	kinds    string                                        // the API groups of kinds that the product makes itself end so
	marks    string                                        // its annotations of nodes and namespaces begin so
	apart    bool                                          // takes too long to build for the tests of every change
	products []product
}

// sources is every module that the test bed knows how to install.
func sources() []source { return []source{flannel, cilium, kubeRouter, calico, canal, kubeOVN} }

// Names lists what can be installed, as cnibench's catalogue calls it.
func Names() []string { return append(names(false), names(true)...) }

// Usual lists what is built and tested with every change; the rest takes too long to build
// for that, and make test-products tests it.
func Usual() []string { return names(false) }

func names(apart bool) []string {
	var names []string
	for _, s := range sources() {
		for _, p := range s.products {
			if s.apart == apart {
				names = append(names, p.name)
			}
		}
	}
	return names
}

// EnforcesPolicies is whether the product cuts off what a NetworkPolicy forbids.
func EnforcesPolicies(name string) bool {
	_, p, err := find(name)
	return err == nil && p.policies
}

// Wire returns what carries the packets of a product's pods between nodes: tcp (the packets
// themselves), ipip or udp and its port; whether they are encrypted; and how the name of the
// node's link that carries them ends, after the node's own.
func Wire(name string) (carrier string, encrypted bool, link string) {
	_, p, _ := find(name)
	return p.wire, p.encrypted, p.link
}

// LoadModules loads the kernel's modules that a product needs, which the product would
// load by using them. The error says what the running kernel lacks.
func LoadModules(ctx context.Context, name string) error {
	_, p, err := find(name)
	if err != nil || p.modules == nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "modprobe", append([]string{"--all"}, p.modules...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s needs %s of the kernel, which testbed/test-guest-kube boots one with: %w: %s",
			name, strings.Join(p.modules, ", "), err, bytes.TrimSpace(out))
	}
	return nil
}

func find(name string) (source, product, error) {
	for _, s := range sources() {
		for _, p := range s.products {
			if p.name == name {
				return s, p, nil
			}
		}
	}
	return source{}, product{}, fmt.Errorf("no product %q here; there are %s", name, strings.Join(Names(), ", "))
}

// Images builds the images of a product, as tarballs that `ctr images import`
// takes, and returns their paths. It takes minutes the first time and nothing
// once they are in the cache.
func Images(ctx context.Context, name string, log logf) ([]string, error) {
	s, _, err := find(name)
	if err != nil {
		return nil, err
	}
	return s.images(ctx, log)
}
