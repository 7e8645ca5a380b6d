//go:build linux

package products

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// kubeRouterModule holds kube-router, its manifests and its scripts.
var kubeRouterModule = module{
	path:    "github.com/cloudnativelabs/kube-router/v2",
	version: "v2.1.0",
	sum:     "h1:xWsptKtmZ44L+NjwFKoFAFlVdxCz8fka9A/eYJe95Ok=",
}

// kubeRouterImage has the published name, so that the published manifest installs
// it unmodified.
const kubeRouterImage = "docker.io/cloudnativelabs/kube-router"

var kubeRouter = source{
	name:    "kube-router",
	files:   kubeRouterFiles,
	images:  kubeRouterImages,
	named:   []string{kubeRouterImage + ":" + kubeRouterModule.version},
	network: "10-kuberouter.conflist",
	cleanup: `
for table in filter nat mangle; do
	iptables-save -t $table | grep -q 'KUBE-ROUTER-\|KUBE-POD-FW-\|KUBE-NWPLCY-\|kube-bridge\|kube-router-\|allow outbound node port\|--vmethod MASQ' || continue
	iptables-save -t $table | grep -v 'KUBE-ROUTER-\|KUBE-POD-FW-\|KUBE-NWPLCY-\|kube-bridge\|kube-router-\|allow outbound node port\|--vmethod MASQ' | iptables-restore
done
[ ! -e /proc/net/ip_vs ] || ipvsadm --clear
for device in kube-bridge kube-dummy-if; do ip link delete $device 2>/dev/null; done
for table in 77 78 79; do
	while ip rule delete lookup $table 2>/dev/null; do :; done
	ip route flush table $table 2>/dev/null
done
destroy_sets '^\(inet6:\)\?\(kube-router-\|KUBE-SRC-\|KUBE-DST-\)'
rm -rf /var/lib/kube-router /var/lib/cni/networks/mynet
`,
	products: kubeRouterProducts,
}

var kubeRouterProducts = []product{
	{
		name:      "kuberouter",
		namespace: "kube-system",
		manifest:  "kubeadm-kuberouter.yaml",
		edits:     func(cluster) []edit { return kubeRouterEdits },
		workloads: []string{"daemonset/kube-router"},
		kubeProxy: true,
		policies:  true,
		wire:      "tcp",
	},
	{
		name:      "kuberouter-all",
		namespace: "kube-system",
		manifest:  "kubeadm-kuberouter-all-features.yaml",
		edits:     withoutKubeProxysConfig,
		workloads: []string{"daemonset/kube-router"},
		policies:  true,
		modules:   []string{"ip_vs", "dummy"},
		wire:      "tcp",
	},
}

// kubeRouterEdits pin the image, as the recipes do: the published manifests take whatever is latest.
var kubeRouterEdits = []edit{
	{"image: " + kubeRouterImage + "\n", "image: " + kubeRouterImage + ":" + kubeRouterModule.version + "\n"},
	{"imagePullPolicy: Always", "imagePullPolicy: Never"},
}

// withoutKubeProxysConfig are the edits of recipe kuberouter-all: the API server's address
// instead of kube-proxy's kubeconfig, as in the 2024 study.
func withoutKubeProxysConfig(c cluster) []edit {
	const env = "        env:\n"
	return append([]edit{
		{"--kubeconfig=/var/lib/kube-router/kubeconfig", "--service-cluster-ip-range=" + c.services.String()},
		{env, env + fmt.Sprintf("        - {name: KUBERNETES_SERVICE_HOST, value: %q}\n        - {name: KUBERNETES_SERVICE_PORT, value: \"%d\"}\n", c.api.Addr(), c.api.Port())},
		{"        - name: kubeconfig\n          mountPath: /var/lib/kube-router\n          readOnly: true\n", ""},
		{"      - name: kubeconfig\n        configMap:\n          name: kube-proxy\n          items:\n          - key: kubeconfig.conf\n            path: kubeconfig\n", ""},
	}, kubeRouterEdits...)
}

func kubeRouterFiles(ctx context.Context) (published, error) {
	dir, err := kubeRouterModule.download(ctx)
	if err != nil {
		return published{}, err
	}
	var files published
	for _, p := range kubeRouterProducts {
		content, err := os.ReadFile(filepath.Join(dir, "daemonset", p.manifest))
		if err != nil {
			return published{}, err
		}
		files.manifests = append(files.manifests, manifest{
			url:     "https://raw.githubusercontent.com/cloudnativelabs/kube-router/" + kubeRouterModule.version + "/daemonset/" + p.manifest,
			content: content,
		})
	}
	return files, nil
}

func kubeRouterImages(ctx context.Context, log logf) ([]string, error) {
	module, err := kubeRouterModule.download(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := build.SourceDir("products/kube-router")
	if err != nil {
		return nil, err
	}
	built, err := build.Programs(ctx, build.Source{
		Dir:      folder,
		Version:  kubeRouterModule.version,
		Packages: []string{kubeRouterModule.path + "/cmd/kube-router"},
		Env:      []string{"GONOSUMDB=" + kubeRouterModule.path}, // go.sum has it
	}, log)
	if err != nil {
		return nil, err
	}
	extensions, err := iptablesExtensions()
	if err != nil {
		return nil, err
	}
	tree := image.NewTree()
	err = addPrograms(tree, append(extensions,
		"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "ipset", "ip",
		"bash", "sh", "env", "cp", "mv", "rm", "mkdir", "install",
	)...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", kubeRouterImage, err)
	}
	tree.AddProgram("/usr/local/bin/kube-router", filepath.Join(built, "kube-router"))
	tree.AddProgram("/usr/local/bin/cni-install", filepath.Join(module, "build", "image-assets", "cni-install"))
	for _, plugin := range []string{"bridge", "portmap", "host-local", "loopback"} {
		path, err := findProgram("/usr/lib/cni/" + plugin)
		if err != nil {
			return nil, err
		}
		tree.AddProgram("/usr/libexec/cni/"+plugin, path)
	}
	path, err := tarball(kubeRouterImage+":"+kubeRouterModule.version, "kube-router", tree, v1.Config{Entrypoint: []string{"/usr/local/bin/kube-router"}}, log)
	return []string{path}, err
}
