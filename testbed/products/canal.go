//go:build linux

package products

import (
	"bytes"
	"context"
	"fmt"
)

// canalFlannel is the image of flannel that Calico's canal.yaml names.
const canalFlannel = "docker.io/flannel/flannel:v0.24.4"

var canal = source{
	name:    "canal",
	files:   canalFiles,
	images:  canalImages,
	named:   calico.named,
	network: "10-canal.conflist",
	cleanup: `
drop_chains FLANNEL-
ip link delete flannel.1 2>/dev/null
rm -rf /run/flannel
` + calicoCleanup,
	marks: "projectcalico.org/",
	apart: true,
	products: []product{{
		name:      "canal",
		namespace: "kube-system",
		manifest:  "canal.yaml",
		edits:     func(cluster) []edit { return nil }, // its network is the test bed's
		workloads: []string{"deployment/calico-kube-controllers", "daemonset/canal"},
		kubeProxy: true,
		policies:  true,
		wire:      "udp 8472",
	}},
}

// canalFiles is the published canal.yaml with the flannel that is made here.
func canalFiles(ctx context.Context) (published, error) {
	p, err := calicoFiles("canal.yaml")(ctx)
	if err != nil {
		return published{}, err
	}
	m := &p.manifests[0]
	if !bytes.Contains(m.content, []byte(canalFlannel)) {
		return published{}, fmt.Errorf("canal.yaml does not name the image %s", canalFlannel)
	}
	ours := flannelImage + ":" + flannelModule.version
	m.content = bytes.ReplaceAll(m.content, []byte(canalFlannel), []byte(ours))
	m.changes = []change{{"image", ours, "made here, for " + canalFlannel + ", whose Go module is not served"}}
	return p, nil
}

func canalImages(ctx context.Context, log logf) ([]string, error) {
	own, err := calicoImages(ctx, log)
	if err != nil {
		return nil, err
	}
	flannel, err := flannelImages(ctx, log)
	return append(own, flannel...), err
}
