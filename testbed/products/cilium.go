//go:build linux

package products

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// ciliumModule holds Cilium's agent, operator, CNI plugin, eBPF sources and
// chart.
var ciliumModule = module{
	path:    "github.com/cilium/cilium",
	version: "v1.15.19",
	sum:     "h1:paLLN6chvDJiW9FB31c2KHdtFbkFB6QsVxgvLHN9XHs=",
}

const (
	ciliumImage         = "localhost/cilium"
	ciliumOperatorImage = "localhost/operator" // the chart adds -generic
	// ciliumPatch counts the versions of what patchCilium does.
	ciliumPatch = "1"
	// ciliumModules is the list of the kernel's modules in the image.
	ciliumModules = "/etc/cilium-kernel-modules"
)

var cilium = source{
	name:    "cilium",
	files:   chartFiles(ciliumModule, "https://helm.cilium.io", ciliumChanges, "install/kubernetes/cilium"),
	images:  ciliumImages,
	network: "05-cilium.conflist",
	cleanup: `
for device in cilium_vxlan cilium_host cilium_net cilium_wg0 $(ip -o link show type veth | awk -F': ' '{print $2}' | cut -d@ -f1 | grep '^lxc'); do
	ip link delete $device 2>/dev/null
done
for device in $(ip -o link show | awk -F': ' '{print $2}' | cut -d@ -f1); do tc qdisc delete dev $device clsact 2>/dev/null; done
drop_chains CILIUM_
for table in 2004 2005; do
	while ip rule delete lookup $table 2>/dev/null; do :; done
	ip route flush table $table 2>/dev/null
done
destroy_sets '^cilium_'
rm -rf /sys/fs/bpf/cilium /sys/fs/bpf/tc /sys/fs/bpf/xdp
umount /run/cilium/cgroupv2 2>/dev/null
rm -rf /run/cilium /var/run/cilium /var/lib/cilium
rm -f /opt/cni/bin/cilium-cni /etc/sysctl.d/99-zzz-override_cilium.conf
`,
	kinds: ".cilium.io",
	products: []product{
		ciliumProduct("cilium", true, "udp 8472", func(cluster) map[string]any { return nil }),
		ciliumProduct("cilium-nokproxy", false, "udp 8472", withoutKubeProxy),
		ciliumProduct("cilium-native", false, "tcp", func(c cluster) map[string]any {
			values := withoutKubeProxy(c)
			values["routingMode"] = "native"
			values["autoDirectNodeRoutes"] = true
			values["ipv4NativeRoutingCIDR"] = c.pods.String()
			values["bpf"] = map[string]any{"masquerade": true}
			return values
		}),
		ciliumProduct("cilium-wg", true, "udp 51871", func(cluster) map[string]any { // VXLAN in WireGuard
			return map[string]any{"encryption": map[string]any{"enabled": true, "type": "wireguard"}}
		}, "wireguard"),
	},
}

func ciliumProduct(name string, kubeProxy bool, wire string, values func(cluster) map[string]any, modules ...string) product {
	return product{
		name: name, namespace: "kube-system", values: values,
		workloads: []string{"deployment/cilium-operator", "daemonset/cilium"},
		kubeProxy: kubeProxy, policies: true,
		modules: modules, wire: wire, encrypted: slices.Contains(modules, "wireguard"),
	}
}

// ciliumChanges are what of Cilium's chart is not as published.
var ciliumChanges = []change{
	{"image.repository", ciliumImage, "made here of the published module and of Debian's programs"},
	{"operator.image.repository", ciliumOperatorImage, "made here"},
	{"operator.replicas", 1, "all nodes are one machine"},
	{"l7Proxy", false, "Envoy is no Go module: policies for HTTP and DNS are missing"},
	{"ipam.mode", "kubernetes", "the published default, 10.0.0.0/8, holds the nodes' own addresses"},
	{"securityContext.capabilities.ciliumAgent",
		[]string{"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_MODULE", "SYS_ADMIN", "BPF", "PERFMON", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"},
		"without SYS_RESOURCE, which containers in containers lack and kernels since 5.11 don't ask for; Debian's bpftool wants BPF and PERFMON"},
	{"securityContext.capabilities.cleanCiliumState", []string{"NET_ADMIN", "SYS_MODULE", "SYS_ADMIN", "BPF", "PERFMON"}, "the same"},
}

// withoutKubeProxy are the values that make Cilium serve all Services itself,
// the API server's included.
func withoutKubeProxy(c cluster) map[string]any {
	return map[string]any{
		"kubeProxyReplacement": "true",
		"k8sServiceHost":       c.api.Addr().String(),
		"k8sServicePort":       int(c.api.Port()),
	}
}

// ciliumPackages are the programs that the chart or the agent starts: package in the module,
// place in the image.
var ciliumPackages = []struct{ path, place string }{
	{"./daemon", "/usr/bin/cilium-agent"},
	{"./cilium-dbg", "/usr/bin/cilium-dbg"},
	{"./cilium-health/responder", "/usr/bin/cilium-health-responder"},
	{"./tools/mount", "/usr/bin/cilium-mount"},
	{"./tools/sysctlfix", "/usr/bin/cilium-sysctlfix"},
	{"./plugins/cilium-cni", "/opt/cni/bin/cilium-cni"},
	{"./operator", "/usr/bin/cilium-operator-generic"},
}

func ciliumImages(ctx context.Context, log logf) ([]string, error) {
	dir, err := ciliumModule.download(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := patchCilium(dir)
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(ciliumModule.version, "v")
	s := build.Source{
		Dir:     sources,
		Version: version + "-" + ciliumPatch,
		// The copy is the main module, so its own go.mod and go.sum apply; it comes without its vendor folder.
		Flags: []string{
			"-mod=mod", "-tags", "ipam_provider_operator",
			"-ldflags", fmt.Sprintf("-s -w -X '%s/pkg/version.ciliumVersion=%s module 2025-07-16T03:27:58Z'", ciliumModule.path, version),
		},
		Env: []string{"GOWORK=off"},
	}
	for _, p := range ciliumPackages {
		s.Packages = append(s.Packages, p.path)
	}
	built, err := build.Programs(ctx, s, log)
	if err != nil {
		return nil, err
	}
	files, err := ciliumTree(dir, built)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ciliumImage, err)
	}
	agent, err := tarball(ciliumImage+":"+ciliumModule.version, "cilium", files, v1.Config{}, log)
	if err != nil {
		return nil, err
	}
	program := image.NewTree()
	program.AddProgram("/usr/bin/cilium-operator-generic", filepath.Join(built, "operator"))
	operator, err := tarball(ciliumOperatorImage+"-generic:"+ciliumModule.version, "cilium-operator", program, v1.Config{}, log)
	if err != nil {
		return nil, err
	}
	return []string{agent, operator}, nil
}

// patchCilium gives a copy of the module, made once, with one change: the
// agent reads the list of the kernel's modules from a file of the image. It
// insists on /proc/modules, which a kernel without loadable modules lacks.
func patchCilium(module string) (string, error) {
	return madeOnce("source-cilium-"+ciliumModule.version+"-"+ciliumPatch, "cilium", func(made string) error {
		if err := copyModule(module, made, "Documentation", "test", "examples", "vendor", "contrib", "install"); err != nil {
			return err
		}
		file := filepath.Join(made, "pkg", "datapath", "linux", "modules", "modules_linux.go")
		return replaceOnce(file, `loadedModulesFilepath = "/proc/modules"`, `loadedModulesFilepath = "`+ciliumModules+`"`)
	})
}

// ciliumTree returns the agent's image: what the published one has, without
// Envoy, the Hubble client and the command cilium-health.
func ciliumTree(module, built string) (*image.Tree, error) {
	extensions, err := iptablesExtensions()
	if err != nil {
		return nil, err
	}
	tree := image.NewTree()
	err = addPrograms(tree, append(extensions,
		// for the agent
		"clang", "llc", "bpftool", "ip", "tc", "ipset",
		"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore",
		// for the chart's scripts
		"sh", "bash", "cat", "cp", "mv", "rm", "mkdir", "ls", "ln", "touch", "chmod", "sleep", "true", "basename", "dirname",
		"find", "grep", "sed", "mount", "umount", "nsenter",
	)...)
	if err != nil {
		return nil, err
	}
	for _, p := range ciliumPackages {
		if !strings.Contains(p.place, "operator") {
			tree.AddProgram(p.place, filepath.Join(built, filepath.Base(p.path)))
		}
	}
	loopback, err := findProgram("/usr/lib/cni/loopback")
	if err != nil {
		return nil, err
	}
	tree.AddLink("/usr/bin/cilium", "cilium-dbg")
	tree.AddLink("/var/run", "/run") // the agent uses both names for one place
	tree.AddProgram("/cni/loopback", loopback)
	tree.AddProgram("/init-container.sh", filepath.Join(module, "images", "cilium", "init-container.sh"))
	tree.AddProgram("/install-plugin.sh", filepath.Join(module, "plugins", "cilium-cni", "install-plugin.sh"))
	tree.AddProgram("/cni-uninstall.sh", filepath.Join(module, "plugins", "cilium-cni", "cni-uninstall.sh"))
	tree.AddText(ciliumModules, kernelModules("vxlan", "ip_tables", "iptable_nat", "iptable_mangle", "iptable_raw", "iptable_filter", "sch_ingress", "cls_bpf"))
	return tree, tree.AddFolder("/var/lib/cilium/bpf", filepath.Join(module, "bpf"))
}

// kernelModules is a list in the format of /proc/modules. What of it is built
// into the kernel is as good as loaded; what the kernel lacks fails when used.
func kernelModules(names ...string) string {
	var list strings.Builder
	for _, name := range names {
		fmt.Fprintf(&list, "%s 0 0 - Live 0x0000000000000000\n", name)
	}
	return list.String()
}
