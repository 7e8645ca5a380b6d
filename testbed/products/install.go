//go:build linux

package products

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/testbed/internal/bed"
)

// ready is how long a product may take on a usual machine until its pods and all nodes are ready.
const ready = 5 * time.Minute

// Install puts a product on the cluster, which must have no pod network yet:
// images onto the nodes, its chart's objects by server-side apply, kube-proxy
// on or off as the product wants it. It returns when the product's workloads
// and all nodes are ready.
func Install(ctx context.Context, b *bed.Bed, name string, log logf) error {
	s, p, err := find(name)
	if err == nil {
		err = LoadModules(ctx, name)
	}
	if err != nil {
		return err
	}
	for _, n := range b.Nodes() {
		found, err := onNode(ctx, b, n.Name, "ls /etc/cni/net.d 2>/dev/null || true")
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(found)) > 0 {
			return fmt.Errorf("%s has a pod network already (/etc/cni/net.d/%s); take that off first with testbed uninstall", n.Name, bytes.Fields(found)[0])
		}
	}
	objects, err := manifests(ctx, b, s, p)
	if err != nil {
		return err
	}
	if err := Prepare(ctx, b, name, log); err != nil {
		return err
	}
	if err := b.SetKubeProxy(ctx, p.kubeProxy); err != nil {
		return err
	}
	log("installing %s", name)
	limit := b.Limit(ready)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s is not ready after %s; testbed kubectl -n %s get pods says more", name, limit, p.namespace))
	defer cancel()
	if err := setLabel(ctx, b, p.label); err != nil {
		return err
	}
	if _, err := b.Kubectl(ctx, bytes.NewReader(objects), "apply", "--server-side", "--force-conflicts", "--filename", "-"); err != nil {
		return err
	}
	for _, workload := range p.workloads {
		if _, err := b.Kubectl(ctx, nil, "--namespace", p.namespace, "rollout", "status", workload); err != nil {
			return becauseOf(ctx, err)
		}
	}
	return becauseOf(ctx, WaitNodes(ctx, b))
}

// Prepare puts a product's images onto all nodes, and does there what an operator does
// before the product comes.
func Prepare(ctx context.Context, b *bed.Bed, name string, log logf) error {
	if err := Import(ctx, b, name, log); err != nil {
		return err
	}
	_, p, err := find(name)
	if err != nil || p.prepare == nil {
		return err
	}
	for i, n := range b.Nodes() {
		if _, err := onNode(ctx, b, n.Name, p.prepare(i+1)); err != nil {
			return err
		}
	}
	_, err = b.Kubectl(ctx, nil, "annotate", "--overwrite", "nodes", "--all", p.annotation)
	return err
}

// Import puts a product's images onto all nodes that lack them, building them
// first if need be.
func Import(ctx context.Context, b *bed.Bed, name string, log logf) error {
	tarballs, err := Images(ctx, name, log)
	if err != nil {
		return err
	}
	for _, tarball := range tarballs {
		// A tarball's name says what is in it. The mark is gone when a node was stopped, which costs one more import.
		mark := "/run/testbed-images/" + filepath.Base(tarball)
		var lack []string
		for _, n := range b.Nodes() {
			found, err := onNode(ctx, b, n.Name, "ls "+mark+" 2>/dev/null; true")
			if err != nil {
				return err
			}
			if len(found) == 0 {
				lack = append(lack, n.Name)
			}
		}
		if len(lack) == 0 {
			continue
		}
		log("importing %s", filepath.Base(tarball))
		if err := b.Import(ctx, tarball, lack...); err != nil {
			return err
		}
		for _, node := range lack {
			if _, err := onNode(ctx, b, node, "mkdir -p "+filepath.Dir(mark)+" && touch "+mark); err != nil {
				return err
			}
		}
	}
	return nil
}

// Uninstall takes a product off the cluster and off the nodes, and starts
// kube-proxy again where the product was in its place. Pods that were on its
// network have to be made anew on the next.
func Uninstall(ctx context.Context, b *bed.Bed, name string, log logf) error {
	s, p, err := find(name)
	if err != nil {
		return err
	}
	objects, err := manifests(ctx, b, s, p)
	if err != nil {
		return err
	}
	log("uninstalling %s", name)
	// First, with their pods: pods on the network while its plugin still works, and then what would
	// make anew what is taken off the nodes.
	for _, workload := range p.workloads {
		if _, err := b.Kubectl(ctx, nil, "--namespace", p.namespace, "delete", workload, "--ignore-not-found", "--cascade=foreground", "--timeout="+b.Limit(2*time.Minute).String()); err != nil {
			return err
		}
	}
	if err := letGo(ctx, b, s.kinds); err != nil {
		return err
	}
	if _, err := b.Kubectl(ctx, bytes.NewReader(objects), "delete", "--ignore-not-found", "--wait", "--timeout="+b.Limit(2*time.Minute).String(), "--filename", "-"); err != nil {
		return err
	}
	if err := deleteKinds(ctx, b, s.kinds); err != nil {
		return err
	}
	if err := deleteMarks(ctx, b, s.marks); err != nil {
		return err
	}
	if key, _, labelled := strings.Cut(p.label, "="); labelled {
		if err := setLabel(ctx, b, key+"-"); err != nil {
			return err
		}
	}
	var errs []error
	for _, n := range b.Nodes() {
		_, err := onNode(ctx, b, n.Name, fmt.Sprintf("seconds=%.0f\n", b.Limit(time.Minute).Seconds())+cleanupFunctions+"end_network "+s.network+"\n"+s.cleanup+cleanupRoutes(podPrefix(b)))
		errs = append(errs, err)
	}
	if !p.kubeProxy {
		errs = append(errs, b.SetKubeProxy(ctx, true))
	}
	return errors.Join(errs...)
}

// cleanupFunctions are what the products' own scripts call.
const cleanupFunctions = `
# kubelet has the network of dead sandboxes taken down again, each minute, and plugins then
# write their files anew: without a configuration containerd calls none, and those that run end.
end_network() {
	rm -f /etc/cni/net.d/$1
	sleep 1 # containerd watches the folder
	for try in $(seq $seconds); do pgrep -x 'cilium-cni|kube-ovn|flannel|calico|calico-ipam|bridge|host-local' >/dev/null || break; sleep 1; done
}
destroy_sets() { # destroys the sets of addresses whose names match; rules that used one may hold it a moment longer
	for try in 1 2 3 4 5; do
		ipset list -name 2>/dev/null | grep "$1" | while read -r set; do ipset destroy "$set" 2>/dev/null; done
		ipset list -name 2>/dev/null | grep -q "$1" || break
		sleep 1
	done
}
drop_chains() { # drops all chains whose names begin so, and the rules that lead there
	for iptables in iptables ip6tables; do
		$iptables-save 2>/dev/null | grep -q -- "$1" || continue
		$iptables-save | grep -v -- "$1" | $iptables-restore
	done
}
`

// cleanupRoutes takes away all routes to pods.
func cleanupRoutes(pods netip.Prefix) string {
	return fmt.Sprintf("ip route show root %s | while read -r route; do ip route delete $route; done\ntrue\n", pods)
}

// setLabel sets a label of the first node, or removes it: key=value, key-. "" is none.
func setLabel(ctx context.Context, b *bed.Bed, label string) error {
	if label == "" {
		return nil
	}
	_, err := b.Kubectl(ctx, nil, "label", "--overwrite", "node", b.Nodes()[0].Name, label)
	return err
}

// kindsOf are the kinds that a product made itself: those whose names end so.
func kindsOf(ctx context.Context, b *bed.Bed, suffix string) ([]string, error) {
	if suffix == "" {
		return nil, nil
	}
	out, err := b.Kubectl(ctx, nil, "get", "customresourcedefinitions", "--output", "name")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return !strings.HasSuffix(name, suffix) }), nil
}

// letGo takes the finalizers from the objects of a product's own kinds: the controllers that
// they wait for are gone.
func letGo(ctx context.Context, b *bed.Bed, suffix string) error {
	kinds, err := kindsOf(ctx, b, suffix)
	if err != nil || len(kinds) == 0 {
		return err
	}
	for i, kind := range kinds {
		_, kinds[i], _ = strings.Cut(kind, "/")
	}
	out, err := b.Kubectl(ctx, nil, "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found", "--output",
		`go-template={{range .items}}{{if .metadata.finalizers}}{{.kind}}.{{.apiVersion}} {{.metadata.name}} {{.metadata.namespace}}{{"\n"}}{{end}}{{end}}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line) // Subnet.kubeovn.io/v1 join <no value>
		group, version, _ := strings.Cut(words[0], "/")
		kind, group, _ := strings.Cut(group, ".")
		patch := []string{"patch", kind + "." + version + "." + group, words[1], "--type", "merge", "--patch", `{"metadata":{"finalizers":null}}`}
		if len(words) == 3 {
			patch = append(patch, "--namespace", words[2])
		}
		if _, err := b.Kubectl(ctx, nil, patch...); err != nil {
			return err
		}
	}
	return nil
}

// deleteKinds deletes the kinds that a product made itself, with all objects.
func deleteKinds(ctx context.Context, b *bed.Bed, suffix string) error {
	kinds, err := kindsOf(ctx, b, suffix)
	if err != nil || len(kinds) == 0 {
		return err
	}
	_, err = b.Kubectl(ctx, nil, append([]string{"delete", "--ignore-not-found", "--timeout=" + b.Limit(time.Minute).String()}, kinds...)...)
	return err
}

// deleteMarks takes away the annotations of nodes and namespaces that begin so.
func deleteMarks(ctx context.Context, b *bed.Bed, prefix string) error {
	if prefix == "" {
		return nil
	}
	out, err := b.Kubectl(ctx, nil, "get", "nodes,namespaces", "--output",
		`go-template={{range .items}}{{.kind}}/{{.metadata.name}}{{range $key, $value := .metadata.annotations}} {{$key}}{{end}}{{"\n"}}{{end}}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		remove := []string{"annotate", words[0]}
		for _, key := range words[1:] {
			if strings.HasPrefix(key, prefix) {
				remove = append(remove, key+"-")
			}
		}
		if len(remove) == 2 {
			continue
		}
		if _, err := b.Kubectl(ctx, nil, remove...); err != nil {
			return err
		}
	}
	return nil
}

// manifests are the objects of a product for this cluster.
func manifests(ctx context.Context, b *bed.Bed, s source, p product) ([]byte, error) {
	files, err := s.files(ctx)
	if err != nil {
		return nil, err
	}
	c := cluster{pods: podPrefix(b), services: b.ServiceCIDR(), first: b.Nodes()[0].Addr, slow: int(b.Limit(1))}
	// The Service's only endpoint is the API server's own address.
	out, err := b.Kubectl(ctx, nil, "--namespace", "default", "get", "endpointslices", "--selector", "kubernetes.io/service-name=kubernetes",
		"--output", "jsonpath={.items[0].endpoints[0].addresses[0]}:{.items[0].ports[0].port}")
	if err != nil {
		return nil, err
	}
	if c.api, err = netip.ParseAddrPort(string(out)); err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	version, err := b.Kubectl(ctx, nil, "get", "nodes", "--output", "jsonpath={.items[0].status.nodeInfo.kubeletVersion}")
	if err != nil {
		return nil, err
	}
	return files.objects(p, c, string(version))
}

// podPrefix holds the pods of all nodes: the /16 around the first node's.
func podPrefix(b *bed.Bed) netip.Prefix {
	return netip.PrefixFrom(b.Nodes()[0].PodCIDR.Addr(), 16).Masked()
}

// WaitNodes waits until every node that runs says that its pod network is
// ready.
func WaitNodes(ctx context.Context, b *bed.Bed) error {
	step := b.Limit(10 * time.Second)
	now, err := b.Status(ctx)
	if err != nil {
		return err
	}
	wait := []string{"wait", "--for=condition=Ready", "--timeout=" + step.String()}
	for name := range now.NodePIDs {
		wait = append(wait, "node/"+name)
	}
	for {
		_, err := b.Kubectl(ctx, nil, wait...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// containerd 1.6 overlooks a configuration that was renamed into its place: write it once more.
		for name := range now.NodePIDs {
			if _, err := onNode(ctx, b, name, `for f in /etc/cni/net.d/*.conflist; do [ -f "$f" ] && content=$(cat "$f") && printf '%s\n' "$content" >"$f"; done; true`); err != nil {
				return err
			}
		}
	}
}

// becauseOf gives the deadline's own words instead of a command's "killed".
func becauseOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// onNode runs a shell script on a node and gives what it prints.
func onNode(ctx context.Context, b *bed.Bed, node, script string) ([]byte, error) {
	cmd, err := b.NodeCommand(ctx, node, "sh", "-c", script)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("on %s: %w: %s", node, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
