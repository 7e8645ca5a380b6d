package record

import (
	"fmt"
	"regexp"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// DefaultGroups are a CNI's daemons and the daemons of a Kubernetes node.
const DefaultGroups = `cni=^(calico-node|calico-felix|felix|bird6?|confd|cilium-agent|cilium-envoy|hubble.*|flanneld|kube-router|antrea-agent|antrea-controll|kube-ovn.*|ovn.*|ovs.*|ovsdb.*|weaver|vpp.*|multus.*|charon|wireguard-go)$,` +
	`node=^(kubelet|kube-proxy|containerd.*|dockerd|crio|k3s.*)$`

// groupBegin matches where the next group begins. A comma alone may be part of a regular
// expression.
var (
	groupBegin = regexp.MustCompile(`,[A-Za-z0-9_-]+=`)
	groupName  = regexp.MustCompile(`^[A-Za-z0-9_-]+=`)
)

// Groups reads NAME=REGEXP,NAME=REGEXP,…
func Groups(text string) ([]sysmon.Group, error) {
	var groups []sysmon.Group
	named := map[string]bool{}
	for text != "" {
		group := text
		if at := groupBegin.FindStringIndex(text); at != nil {
			group, text = text[:at[0]], text[at[0]+1:]
		} else {
			text = ""
		}
		at := groupName.FindString(group)
		if at == "" || at == group {
			return nil, fmt.Errorf("%q is no process group; write NAME=REGEXP, and separate several by commas", group)
		}
		name := at[:len(at)-1]
		if named[name] {
			return nil, fmt.Errorf("group %s appears twice; join its expressions by |", name)
		}
		named[name] = true
		match, err := regexp.Compile(group[len(at):])
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", name, err)
		}
		groups = append(groups, sysmon.Group{Name: name, Match: match})
	}
	return groups, nil
}
