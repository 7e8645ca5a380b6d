//go:build linux

package products

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// calicoModule holds Calico, its manifests and the file system of its images, as the
// tag calicoVersion has them, which is no version of a Go module.
var calicoModule = module{
	path:    "github.com/projectcalico/calico",
	version: "v0.0.0-20251021213802-b1f3c43f8437",
	sum:     "h1:PbLe6D0Yis8ce4F+o/Dmlrv4Her2ZN6ns8rmlZoFoEY=",
}

const (
	calicoVersion = "v3.31.0"
	// The images have the published names, so that the published manifests install them
	// unmodified.
	calicoNodeImage        = "quay.io/calico/node:" + calicoVersion
	calicoCNIImage         = "quay.io/calico/cni:" + calicoVersion
	calicoControllersImage = "quay.io/calico/kube-controllers:" + calicoVersion
)

var calico = source{
	name:    "calico",
	files:   calicoFiles("calico-vxlan.yaml"),
	images:  calicoImages,
	named:   []string{calicoNodeImage, calicoCNIImage, calicoControllersImage},
	network: "10-calico.conflist",
	cleanup: calicoCleanup,
	marks:   "projectcalico.org/",
	apart:   true,
	products: []product{
		calicoProduct("calico", "tcp", nil), // the nodes have one subnet
		calicoProduct("calico-vxlan", "udp 4789", nil, calicoPool("VXLAN", "CrossSubnet", "Always")),
		calicoProduct("calico-noencap", "tcp", nil, calicoPool("VXLAN", "CrossSubnet", "Never"), calicoRoutes),
		calicoProduct("calico-ipip", "ipip", []string{"ipip"},
			calicoPool("VXLAN", "CrossSubnet", "Never"), calicoPool("IPIP", "Never", "Always"), calicoRoutes),
		// Felix looks for tunl0, for which the kernel loads ipip and makes it.
		calicoProduct("calico-wg", "udp 51820", []string{"wireguard", "ipip"}, felixSetting("WIREGUARDENABLED", "true")),
	},
}

func calicoProduct(name, wire string, modules []string, others ...edit) product {
	return product{
		name:      name,
		namespace: "kube-system",
		manifest:  "calico-vxlan.yaml",
		edits: func(c cluster) []edit {
			// The pool is 192.168.0.0/16 unless it is given, as the manifest's comment says.
			pool := edit{
				"# - name: CALICO_IPV4POOL_CIDR\n            #   value: \"192.168.0.0/16\"",
				fmt.Sprintf("- name: CALICO_IPV4POOL_CIDR\n              value: %q", c.pods),
			}
			return append([]edit{pool}, others...)
		},
		workloads: []string{"deployment/calico-kube-controllers", "daemonset/calico-node"},
		kubeProxy: true,
		policies:  true,
		modules:   modules,
		wire:      wire,
		encrypted: slices.Contains(modules, "wireguard"),
	}
}

// calicoPool changes when packets between nodes are encapsulated so, from what is published.
func calicoPool(encapsulation, published, mode string) edit {
	variable := "- name: CALICO_IPV4POOL_" + encapsulation + "\n              value: "
	return edit{variable + strconv.Quote(published), variable + strconv.Quote(mode)}
}

// calicoRoutes has Felix write the routes between nodes that only BIRD writes else: those
// without encapsulation and in IP in IP.
var calicoRoutes = felixSetting("PROGRAMCLUSTERROUTES", "Enabled")

// felixSetting adds a setting of Felix to its environment.
func felixSetting(name, value string) edit {
	const next = "            - name: FELIX_HEALTHENABLED\n"
	return edit{next, fmt.Sprintf("            - name: FELIX_%s\n              value: %q\n", name, value) + next}
}

// calicoCleanup takes away what Felix and the CNI plugin leave.
const calicoCleanup = `
for device in vxlan.calico wireguard.cali $(ip -o link show | awk -F': ' '{print $2}' | cut -d@ -f1 | grep '^cali'); do
	ip link delete $device 2>/dev/null
done
ip address flush dev tunl0 2>/dev/null && ip link set tunl0 down
while ip rule delete priority 99 2>/dev/null; do :; done
ip route flush table 1 2>/dev/null
drop_chains 'cali[-:4]'
destroy_sets '^cali[46]'
umount /run/calico/cgroup 2>/dev/null
rm -rf /sys/fs/bpf/calico /sys/fs/bpf/tc /var/lib/calico /run/calico /var/log/calico /run/nodeagent /var/lib/cni/networks/k8s-pod-network
rm -f /etc/cni/net.d/calico-kubeconfig /opt/cni/bin/calico /opt/cni/bin/calico-ipam
`

// calicoFiles is the published manifest of that name.
func calicoFiles(name string) func(context.Context) (published, error) {
	return func(ctx context.Context) (published, error) {
		dir, err := calicoModule.download(ctx)
		if err != nil {
			return published{}, err
		}
		content, err := os.ReadFile(filepath.Join(dir, "manifests", name))
		if err != nil {
			return published{}, err
		}
		m := manifest{url: "https://raw.githubusercontent.com/projectcalico/calico/" + calicoVersion + "/manifests/" + name, content: content}
		return published{manifests: []manifest{m}}, nil
	}
}

// calicoImages builds without cgo all but mountns, which is nothing else: only the eBPF
// mode needs libbpf, and it is not offered.
func calicoImages(ctx context.Context, log logf) ([]string, error) {
	module, err := calicoModule.download(ctx)
	if err != nil {
		return nil, err
	}
	built, err := calicoPrograms(ctx, "CGO_ENABLED=0", log,
		"cni-plugin/cmd/calico", "cni-plugin/cmd/install", "node/cmd/calico-node",
		"kube-controllers/cmd/kube-controllers", "kube-controllers/cmd/check-status", "kube-controllers/cmd/wrapper")
	if err != nil {
		return nil, err
	}
	mountns, err := calicoPrograms(ctx, "CGO_ENABLED=1", log, "node/cmd/mountns")
	if err != nil {
		return nil, err
	}
	filter, err := calicoFilter(ctx, module)
	if err != nil {
		return nil, err
	}

	node, err := calicoNode(module)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", calicoNodeImage, err)
	}
	node.AddProgram("/usr/bin/calico-node", filepath.Join(built, "calico-node"))
	node.AddProgram("/usr/bin/mountns", filepath.Join(mountns, "mountns"))
	node.AddProgram("/usr/lib/calico/bpf/filter.o", filter)
	cni := image.NewTree()
	for name, program := range map[string]string{"calico": "calico", "calico-ipam": "calico", "install": "install"} {
		cni.AddProgram("/opt/cni/bin/"+name, filepath.Join(built, program))
	}
	for _, plugin := range []string{"host-local", "loopback", "portmap", "tuning"} {
		path, err := findProgram("/usr/lib/cni/" + plugin)
		if err != nil {
			return nil, err
		}
		cni.AddProgram("/opt/cni/bin/"+plugin, path)
	}
	controllers := image.NewTree()
	for _, program := range []string{"kube-controllers", "check-status", "wrapper"} {
		controllers.AddProgram("/usr/bin/"+program, filepath.Join(built, program))
	}
	controllers.AddDir("/status", 0o777)

	var tarballs []string
	for _, i := range []struct {
		name, prefix string
		files        *image.Tree
		config       v1.Config
	}{
		{calicoNodeImage, "calico-node", node, v1.Config{
			Entrypoint: []string{"start_runit"},
			Env: []string{
				"SVDIR=/etc/service/enabled",
				// No eBPF mode was ever here, and to look for what it leaves wants libbpf.
				"FELIX_DebugSkipCTLBCleanup=true",
			},
		}},
		{calicoCNIImage, "calico-cni", cni, v1.Config{Entrypoint: []string{"/opt/cni/bin/install"}}},
		{calicoControllersImage, "calico-kube-controllers", controllers, v1.Config{
			Entrypoint: []string{"/usr/bin/wrapper", "/usr/bin/kube-controllers"}, User: "999",
		}},
	} {
		path, err := tarball(i.name, i.prefix, i.files, i.config, log)
		if err != nil {
			return nil, err
		}
		tarballs = append(tarballs, path)
	}
	return tarballs, nil
}

func calicoPrograms(ctx context.Context, cgo string, log logf, programs ...string) (string, error) {
	folder, err := build.SourceDir("products/calico")
	if err != nil {
		return "", err
	}
	s := build.Source{
		Dir:     folder,
		Version: calicoVersion,
		Env:     []string{cgo, "GONOSUMDB=github.com/projectcalico"}, // go.sum has them
		Flags:   []string{"-ldflags", "-s -w -X " + calicoModule.path + "/pkg/buildinfo.Version=" + calicoVersion},
	}
	for _, program := range programs {
		s.Packages = append(s.Packages, calicoModule.path+"/"+program)
	}
	return build.Programs(ctx, s, log)
}

// calicoFilter compiles, once, the one eBPF program of the iptables mode: without it
// Felix tries for ever to find out whether XDP has something to clean up.
func calicoFilter(ctx context.Context, module string) (string, error) {
	return madeOnce("calico-filter-"+calicoVersion, "filter.o", func(made string) error {
		// As felix/bpf-apache/Makefile has it; the folder is where Debian has asm/types.h.
		cmd := exec.CommandContext(ctx, "clang", "-D__KERNEL__", "-D__ASM_SYSREG_H", "-fno-stack-protector", "-O2", "-g", "-target", "bpf",
			"-I/usr/include/x86_64-linux-gnu", "-I/usr/include/aarch64-linux-gnu", "-c", filepath.Join(module, "felix", "bpf-apache", "filter.c"), "-o", made)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("XDP program of Calico: %w: %s; scripts/setup test-products installs what is needed", err, out)
		}
		return nil
	})
}

// calicoNode is the image of the agent but its own programs, without BIRD.
func calicoNode(module string) (*image.Tree, error) {
	extensions, err := iptablesExtensions()
	if err != nil {
		return nil, err
	}
	tree := image.NewTree()
	programs := append(extensions, "ip", "tc", "ipset", "conntrack", "nft", "bpftool", "runsvdir", "runsv", "sv",
		// of the scripts
		"sh", "bash", "env", "cat", "cp", "mkdir", "rm", "which")
	for _, version := range []string{"iptables", "ip6tables"} {
		for _, form := range []string{"", "-nft", "-legacy"} {
			for _, verb := range []string{"", "-save", "-restore"} {
				programs = append(programs, version+form+verb)
			}
		}
	}
	if err := addPrograms(tree, programs...); err != nil {
		return nil, err
	}
	tree.AddLink("/var/run", "/run")
	root := filepath.Join(module, "node", "filesystem")
	return tree, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if rest, found := strings.CutPrefix(name, "sbin/"); found {
			name = "usr/sbin/" + rest
		}
		tree.AddProgram(name, path) // modules don't keep which file is a program
		return err
	})
}
