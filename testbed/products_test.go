//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/testbed/products"
)

// denyAll lets nobody reach the pods that are labelled so.
const denyAll = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {app: two}}, policyTypes: [Ingress]}
---
`

// Every product that the kernel can carry can be installed after every other: pods
// reach each other across nodes and through a Service, in the product's tunnel and
// encrypted if it encrypts, a policy holds where the product enforces policies, and
// nothing of it is left on the nodes. testbed/test-guest-kube runs it under a kernel that
// can carry the rest.
func TestProducts(t *testing.T) {
	names := products.Usual()
	if wanted := os.Getenv("CNIBENCH_TEST_PRODUCTS"); wanted != "" { // make test-products, make test-guest-kube
		names = strings.Fields(wanted)
	}
	if os.Getenv("CNIBENCH_TESTBED") != "" { // now, as some modules bring a device along
		names = slices.DeleteFunc(names, func(name string) bool {
			err := products.LoadModules(t.Context(), name)
			if err != nil {
				t.Log(err)
			}
			return err != nil
		})
	}
	p := newProgram(t)
	p.run("up", "--nodes", "2")
	p.importTestImage()
	before := p.nodeState()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			p := p
			p.t = t
			defer func() {
				if t.Failed() { // the next product wants nodes without a pod network
					_, _ = p.try("kubectl", "delete", "--ignore-not-found", "pod/one", "pod/two", "service/one", "service/two", "networkpolicy/deny")
					_, _ = p.try("uninstall", name)
				}
			}()
			p.run("install", name)
			p.apply(podYAML("one", "node-1") + podYAML("two", "node-2"))
			p.run("kubectl", "wait", "--for=condition=Ready", "--timeout="+patience().String(), "pod/one", "pod/two")
			podURL := func(name string) string {
				return "http://" + strings.TrimSpace(p.run("kubectl", "get", "pod", name, "-o", "jsonpath={.status.podIP}")) + ":8080/" + words
			}
			serviceURL := func(name string) string {
				return "http://" + p.run("kubectl", "get", "service", name, "-o", "jsonpath={.spec.clusterIP}") + "/" + words
			}
			reachFrom := func(pod, url string) error {
				_, err := p.try("kubectl", "exec", pod, "--", "/test", "get", url)
				return err
			}
			pod, service := podURL("two"), serviceURL("two")
			reach := func(url string) error { return reachFrom("one", url) }
			ways := []struct{ from, url string }{{"one", pod}, {"one", service}, {"two", podURL("one")}, {"two", serviceURL("one")}}
			carrier, encrypted, link := products.Wire(name)
			wire := p.onWire("node-2"+link, func() {
				for _, w := range ways {
					p.eventually(w.url, func() error { return reachFrom(w.from, w.url) })
				}
			})
			if err := wire.check(carrier, encrypted); err != nil {
				t.Errorf("between the nodes: %v", err)
			}
			t.Logf("between the nodes, frames by what carries them: %+v", wire)

			p.apply(denyAll)
			if products.EnforcesPolicies(name) {
				p.eventually("a policy", func() error {
					if reach(pod) == nil {
						return fmt.Errorf("%s can be reached", pod)
					}
					return nil
				})
			} else {
				p.eventually("though a policy forbids it, which "+name+" does not enforce", func() error { return reach(pod) })
			}
			p.run("kubectl", "delete", "networkpolicy", "deny")
			p.eventually("without the policy", func() error { return reach(service) })

			p.run("kubectl", "delete", "pod,service", "one", "two")
			p.run("uninstall", name)
			if diff := cmp.Diff(before, p.nodeState()); diff != "" {
				t.Errorf("nodes before and after, -before +after:\n%s", diff)
			}
		})
	}
}

// nodeState is what a pod network could leave on the nodes.
func (p program) nodeState() string {
	p.t.Helper()
	var all strings.Builder
	for _, node := range []string{"node-1", "node-2"} {
		fmt.Fprintln(&all, node+":", p.run("node-exec", node, "--", "sh", "-c", `
			ip -o link show | awk -F': ' '{print $2}' | cut -d@ -f1 | sort
			ip rule show
			ip route show table all | grep -v 'table local' | sort
			iptables-save | sed '/KUBE-ROUTER-\|KUBE-POD-FW-\|KUBE-NWPLCY-/b; /KUBE-/d' | grep '^-A\|^:.* - ' | sed 's/ \[.*//' | sort
			cat /proc/net/ip_vs 2>/dev/null | tail -n +4
			ipset list -name
			tc filter show dev eth0 ingress
			ls /etc/cni/net.d /opt/cni/bin /sys/fs/bpf
			find /run/flannel /run/cilium /var/lib/cilium /run/calico /var/lib/calico /var/lib/cni -type f 2>/dev/null; true`))
	}
	return all.String()
}
