//go:build linux

package main

import (
	"fmt"
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

// Every product can be installed after every other: pods reach each other
// across nodes and through a Service, a policy holds where the product enforces
// policies, and nothing of it is left on the nodes.
func TestProducts(t *testing.T) {
	p := newProgram(t)
	p.run("up", "--nodes", "2")
	p.importTestImage()
	before := p.nodeState()
	for _, name := range products.Names() {
		t.Run(name, func(t *testing.T) {
			p := p
			p.t = t
			p.run("install", name)
			p.apply(podYAML("one", "node-1") + podYAML("two", "node-2"))
			p.run("kubectl", "wait", "--for=condition=Ready", "--timeout=120s", "pod/one", "pod/two")
			pod := "http://" + strings.TrimSpace(p.run("kubectl", "get", "pod", "two", "-o", "jsonpath={.status.podIP}")) + ":8080"
			service := "http://" + p.run("kubectl", "get", "service", "two", "-o", "jsonpath={.spec.clusterIP}")
			reach := func(url string) error {
				_, err := p.try("kubectl", "exec", "one", "--", "/test", "get", url)
				return err
			}
			for _, url := range []string{pod, service} {
				p.eventually(url, func() error { return reach(url) })
			}

			p.apply(denyAll)
			if products.EnforcesPolicies(name) {
				p.eventually("a policy", func() error {
					if reach(pod) == nil {
						return fmt.Errorf("%s can be reached", pod)
					}
					return nil
				})
			} else if err := reach(pod); err != nil {
				t.Errorf("%s enforces policies: %v", name, err)
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
			iptables-save | grep '^:.* - ' | grep -v KUBE- | cut -d' ' -f1 | sort
			tc filter show dev eth0 ingress
			ls /etc/cni/net.d /opt/cni/bin /sys/fs/bpf
			find /run/flannel /run/cilium /var/lib/cilium /var/lib/cni -type f 2>/dev/null; true`))
	}
	return all.String()
}
