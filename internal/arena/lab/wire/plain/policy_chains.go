//go:build linux

package plain

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/netip"
	"strings"
	"text/template"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/text"
)

// chainFiles has one file for each agent: its template "node" is loaded with a
// node's first pod, "pod" with each pod.
//
//go:embed chains/*.tmpl
var chainFiles embed.FS

// PolicyChains loads the iptables chains through which an agent that enforces
// policies sends the packets of pods that no policy selects. They come after what
// serves Services, because such agents keep their jumps in front of kube-proxy's.
var PolicyChains = wire.Transport{
	Name:    "policy-chains",
	Summary: "the iptables chains of an agent that enforces policies, where there is no policy (Felix, kube-router)",
	Params:  []string{"of", "pods", "encapsulation", "port"},
	Setup:   func(context.Context, *wire.Fabric, wire.Params) error { return nil },
	Attached: func(ctx context.Context, _ *wire.Fabric, pod *wire.Pod, p wire.Params) error {
		v, err := chainValuesOf(pod, p)
		if err != nil {
			return fmt.Errorf("policy-chains: %s: %w", pod.Name, err)
		}
		text, err := chainRules(p.Text("of", ""), v, pod.Nth == 0)
		if err != nil {
			return fmt.Errorf("policy-chains: %w", err)
		}
		n := pod.Node
		lock := []string{"XTABLES_LOCKFILE=" + n.Dir + "/xtables.lock"} // nodes share a file system
		if err := n.Feed(ctx, text, lock, "iptables-nft-restore", "-w", "5", "--noflush"); err != nil {
			return fmt.Errorf("policy-chains: %s: %w", pod.Name, err)
		}
		return nil
	},
}

// chainValues are what the templates of chains take.
type chainValues struct {
	Pods          string       // interfaces of pods on the node, as iptables matches them: veth+
	Encapsulation string       // between nodes: vxlan, ipip, wireguard; empty: none
	Port          int          // of the encapsulation over UDP
	Underlay      netip.Prefix // the nodes' addresses
	Interface     string       // of the pod, on its node
	Address       netip.Addr   // of the pod
}

func chainValuesOf(pod *wire.Pod, p wire.Params) (chainValues, error) {
	v := chainValues{
		Pods: p.Text("pods", "veth+"), Encapsulation: p.Text("encapsulation", ""), Port: p.Int("port", 0),
		Underlay: pod.Node.Addr.Masked(), Address: pod.Addr,
	}
	inside, err := pod.NS.Netlink()
	if err != nil {
		return v, err
	}
	defer inside.Close()
	outside, err := pod.Node.NS.Netlink()
	if err != nil {
		return v, err
	}
	defer outside.Close()
	end, err := inside.LinkByName(wire.UplinkName)
	if err != nil {
		return v, err
	}
	var peer netlink.Link
	if peer, err = outside.LinkByIndex(end.Attrs().ParentIndex); err == nil {
		v.Interface = peer.Attrs().Name
	}
	return v, err
}

// chainRules returns the input of iptables-restore --noflush for a pod, and before it
// that for its node where the pod is the node's first.
func chainRules(agent string, v chainValues, first bool) ([]byte, error) {
	all, err := chainFiles.ReadDir("chains")
	if err != nil {
		return nil, err
	}
	var known []string
	for _, file := range all {
		known = append(known, strings.TrimSuffix(file.Name(), ".tmpl"))
	}
	if agent, err = text.Find("policy-chains of", agent, known, func(s string) string { return s }); err != nil {
		return nil, err
	}
	t, err := template.ParseFS(chainFiles, "chains/"+agent+".tmpl")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if first {
		if err := t.ExecuteTemplate(&text, "node", v); err != nil {
			return nil, err
		}
	}
	err = t.ExecuteTemplate(&text, "pod", v)
	return text.Bytes(), err
}
