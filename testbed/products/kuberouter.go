//go:build linux

package products

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

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
	image:   kubeRouterImage + ":" + kubeRouterModule.version,
	network: "10-kuberouter.conflist",
	cleanup: `
for table in filter nat mangle; do
	iptables-save -t $table | grep -q 'KUBE-ROUTER-\|KUBE-POD-FW-\|KUBE-NWPLCY-\|kube-bridge\|kube-router-\|allow outbound node port' || continue
	iptables-save -t $table | grep -v 'KUBE-ROUTER-\|KUBE-POD-FW-\|KUBE-NWPLCY-\|kube-bridge\|kube-router-\|allow outbound node port' | iptables-restore
done
ip link delete kube-bridge 2>/dev/null
for table in 77 78 79; do
	while ip rule delete lookup $table 2>/dev/null; do :; done
	ip route flush table $table 2>/dev/null
done
for try in 1 2 3 4 5; do
	ipset list -name 2>/dev/null | grep '^\(inet6:\)\?\(kube-router-\|KUBE-SRC-\|KUBE-DST-\)' | while read -r set; do ipset destroy "$set" 2>/dev/null; done
	ipset list -name 2>/dev/null | grep -q kube-router- || break
	sleep 1
done
rm -rf /var/lib/kube-router /var/lib/cni/networks/mynet
`,
	products: []product{{
		name:      "kuberouter",
		namespace: "kube-system",
		workloads: []string{"daemonset/kube-router"},
		kubeProxy: true,
		policies:  true,
	}},
}

func kubeRouterFiles(ctx context.Context) (published, error) {
	dir, err := kubeRouterModule.download(ctx)
	if err != nil {
		return published{}, err
	}
	const name = "kubeadm-kuberouter.yaml"
	content, err := os.ReadFile(filepath.Join(dir, "daemonset", name))
	if err != nil {
		return published{}, err
	}
	m := manifest{
		url:     "https://raw.githubusercontent.com/cloudnativelabs/kube-router/" + kubeRouterModule.version + "/daemonset/" + name,
		content: content,
	}
	// As the recipe does: the published manifest takes whatever is latest.
	here := bytes.ReplaceAll(content, []byte("image: "+kubeRouterImage+"\n"), []byte("image: "+kubeRouterImage+":"+kubeRouterModule.version+"\n"))
	here = bytes.ReplaceAll(here, []byte("imagePullPolicy: Always"), []byte("imagePullPolicy: Never"))
	if bytes.Equal(here, content) {
		return published{}, fmt.Errorf("%s does not name the image %s", name, kubeRouterImage)
	}
	return published{manifests: []manifest{m}, install: here}, nil
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
	path, err := tarball(kubeRouterImage+":"+kubeRouterModule.version, "kube-router", tree, log, "/usr/local/bin/kube-router")
	return []string{path}, err
}
