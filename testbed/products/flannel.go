//go:build linux

package products

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// flannelModule holds flannel's daemon, its chart and its manifest.
var flannelModule = module{
	path:    "github.com/flannel-io/flannel",
	version: "v0.28.4",
	sum:     "h1:6O4wGCrCTl0Gf5BBpxfOJgOstkxZhEx3ZXzcKRopH8Q=",
}

const (
	flannelImage    = "localhost/flannel"
	flannelCNIImage = "localhost/flannel-cni-plugin"
	flannelCNITag   = "v0.9.1" // of containernetworking/plugins, where it was then
)

var flannel = source{
	name:    "flannel",
	files:   flannelFiles,
	images:  flannelImages,
	network: "10-flannel.conflist",
	cleanup: `
for device in flannel.1 flannel-wg flannel.ipip cni0; do ip link delete $device 2>/dev/null; done
drop_chains FLANNEL-
nft delete table ip flannel-ipv4 2>/dev/null
nft delete table ip6 flannel-ipv6 2>/dev/null
rm -rf /run/flannel /opt/cni/bin/flannel /var/lib/cni/flannel /var/lib/cni/networks/cbr0
`,
	products: []product{
		flannelProduct("vxlan", "udp 8472"),
		flannelProduct("host-gw", "tcp"),
		flannelProduct("ipip", "ipip", "ipip"),
		flannelProduct("wireguard", "udp 51820", "wireguard"),
	},
}

func flannelProduct(backend, wire string, modules ...string) product {
	return product{
		name:      "flannel-" + backend,
		namespace: "kube-flannel",
		values: func(c cluster) map[string]any {
			return map[string]any{"podCidr": c.pods.String(), "flannel": map[string]any{"backend": backend}}
		},
		workloads: []string{"daemonset/kube-flannel-ds"},
		kubeProxy: true,
		modules:   modules,
		wire:      wire,
		encrypted: slices.Contains(modules, "wireguard"),
	}
}

// flannelChanges are what of flannel's chart is not as published.
var flannelChanges = []change{
	{"flannel.image.repository", flannelImage, "made here of the published module and of Debian's programs"},
	{"flannel.flannel_cni.image.repository", flannelCNIImage, "made here"},
	{"flannel.flannel_cni.image.tag", flannelCNITag,
		"the plugin's own module is not published; this is its last version in github.com/containernetworking/plugins"},
}

func flannelFiles(ctx context.Context) (published, error) {
	dir, err := flannelModule.download(ctx)
	if err != nil {
		return published{}, err
	}
	c, err := loadChart(filepath.Join(dir, "chart", "kube-flannel"), flannelChanges)
	if err != nil {
		return published{}, err
	}
	plain, err := flannelManifest(filepath.Join(dir, "Documentation", "kube-flannel.yml"))
	if err != nil {
		return published{}, err
	}
	return published{
		Chart:      c,
		repository: "https://flannel-io.github.io/flannel",
		changes:    flannelChanges,
		manifests:  []manifest{plain},
	}, nil
}

// flannelManifest is the published kube-flannel.yml with our images.
func flannelManifest(path string) (manifest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return manifest{}, err
	}
	m := manifest{url: "https://github.com/flannel-io/flannel/releases/download/" + flannelModule.version + "/kube-flannel.yml"}
	for _, image := range []struct{ published, ours string }{
		{"ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1", flannelCNIImage + ":" + flannelCNITag},
		{"ghcr.io/flannel-io/flannel:" + flannelModule.version, flannelImage + ":" + flannelModule.version},
	} {
		if !bytes.Contains(content, []byte(image.published)) {
			return manifest{}, fmt.Errorf("%s does not name the image %s", path, image.published)
		}
		content = bytes.ReplaceAll(content, []byte(image.published), []byte(image.ours))
		m.changes = append(m.changes, change{"image", image.ours, "made here, for " + image.published})
	}
	m.content = content
	return m, nil
}

func flannelImages(ctx context.Context, log logf) ([]string, error) {
	daemon, err := flannelPrograms(ctx, "tools/flanneld", flannelModule.version, flannelModule.path, "CGO_ENABLED=1", log)
	if err != nil {
		return nil, err
	}
	plugin, err := flannelPrograms(ctx, "products/flannel-cni", flannelCNITag, "github.com/containernetworking/plugins/plugins/meta/flannel", "CGO_ENABLED=0", log)
	if err != nil {
		return nil, err
	}
	var tarballs []string
	for _, i := range []struct {
		name, prefix, program, place string
		others                       []string
	}{
		{flannelImage + ":" + flannelModule.version, "flannel", filepath.Join(daemon, "flannel"), "/opt/bin/flanneld", []string{
			"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "nft", "ip", "sh", "cp",
		}},
		{flannelCNIImage + ":" + flannelCNITag, "flannel-cni", filepath.Join(plugin, "flannel"), "/flannel", []string{"cp"}},
	} {
		files, err := flannelTree(i.program, i.place, i.others...)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", i.name, err)
		}
		path, err := tarball(i.name, i.prefix, files, v1.Config{}, log)
		if err != nil {
			return nil, err
		}
		tarballs = append(tarballs, path)
	}
	return tarballs, nil
}

func flannelPrograms(ctx context.Context, dir, version, program, env string, log logf) (string, error) {
	folder, err := build.SourceDir(dir)
	if err != nil {
		return "", err
	}
	return build.Programs(ctx, build.Source{
		Dir:      folder,
		Version:  version,
		Packages: []string{program},
		Env:      []string{env},
	}, log)
}

// flannelTree returns the program at its place in the image, and others of
// this machine.
func flannelTree(program, place string, others ...string) (*image.Tree, error) {
	if slices.Contains(others, "iptables") {
		extensions, err := iptablesExtensions()
		if err != nil {
			return nil, err
		}
		others = append(others, extensions...)
	}
	tree := image.NewTree()
	tree.AddProgram(place, program)
	return tree, addPrograms(tree, others...)
}
