package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/ns"
	"github.com/cnibench/cnibench/internal/wire"
)

// usePodCIDR in a configuration stands for the node's own pod network, as
// kubelet's and Multus' users know it from host-local.
const usePodCIDR = "usePodCidr"

// attach runs the CNI plugins that give the pod its interface, inside the
// node's namespace as a container runtime on that node would.
func (n *network) attach(ctx context.Context, node *wire.Node, pod *ns.NS, name string) (netip.Addr, error) {
	var raw []byte
	var err error
	if n.pieces.custom != nil {
		raw, err = n.pieces.custom.list()
	} else {
		raw, err = json.Marshal(n.pieces.attach.Conf(n.fabric, node, n.pieces.attachParams))
	}
	if err == nil {
		raw, err = localize(raw, filepath.Join(n.dir, "ipam"), node.PodCIDR)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	list, err := libcni.NetworkConfFromBytes(raw)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("CNI configuration of %s: %w", node.Name, err)
	}
	cni := libcni.NewCNIConfigWithCacheDir(n.lab.opt.CNIPath, filepath.Join(n.dir, "cni-cache"), nil)
	var addr netip.Addr
	err = node.NS.Do(func() error {
		res, err := cni.AddNetworkList(ctx, list, &libcni.RuntimeConf{ContainerID: name, NetNS: pod.Path(), IfName: wire.UplinkName})
		if err != nil {
			return fmt.Errorf("CNI ADD of %s: %w", name, err)
		}
		result, err := types100.NewResultFromResult(res)
		if err != nil {
			return fmt.Errorf("CNI ADD of %s: %w", name, err)
		}
		for _, ip := range result.IPs {
			if a, ok := netip.AddrFromSlice(ip.Address.IP.To4()); ok {
				addr = a
				return nil
			}
		}
		return fmt.Errorf("CNI ADD of %s: the plugins gave it no IPv4 address", name)
	})
	if err != nil {
		return addr, err
	}
	for _, other := range n.pods {
		if other.addr == addr {
			return addr, fmt.Errorf("CNI ADD: %s and %s both got %s; let every node have its own subnet: \"subnet\": %q", other.Name(), name, addr, usePodCIDR)
		}
	}
	return addr, nil
}

// localize keeps the address book inside the lab and puts the node's pod
// network where the configuration says usePodCidr.
func localize(raw []byte, books string, podCIDR netip.Prefix) ([]byte, error) {
	var conf map[string]any
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, err
	}
	plugins, _ := conf["plugins"].([]any)
	for _, p := range plugins {
		plugin, _ := p.(map[string]any)
		if ipam, ok := plugin["ipam"].(map[string]any); ok && ipam["type"] == "host-local" {
			ipam["dataDir"] = books
			replaceText(ipam, usePodCIDR, podCIDR.String())
		}
	}
	return json.Marshal(conf)
}

// replaceText replaces a text wherever it is a whole value.
func replaceText(v any, old, text string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = replaceText(e, old, text)
		}
	case []any:
		for i, e := range v {
			v[i] = replaceText(e, old, text)
		}
	case string:
		if v == old {
			return text
		}
	}
	return v
}

// findPlugin finds a CNI plugin or says which package has it.
func (l *lab) findPlugin(name string) (string, error) {
	path, err := invoke.FindInPath(name, l.opt.CNIPath)
	if err != nil {
		return "", &arena.Unsupported{
			Reason: fmt.Sprintf("CNI plugin %q is not in %s", name, strings.Join(l.opt.CNIPath, ", ")),
			Remedy: "install it with: apt-get install containernetworking-plugins, or set CNI_PATH",
		}
	}
	return path, nil
}

// ReadCustom reads a user's CNI configuration.
func ReadCustom(file, transport string) (*CustomAttach, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &CustomAttach{File: file, Conf: raw, Transport: transport}
	if _, err := customPlugins(c); err != nil {
		return nil, err
	}
	return c, nil
}

// list is the configuration as a list: a single plugin's is a list of one.
func (c *CustomAttach) list() ([]byte, error) {
	var conf map[string]any
	if err := json.Unmarshal(c.Conf, &conf); err != nil {
		return nil, fmt.Errorf("%s: no CNI configuration: %w", c.File, err)
	}
	if _, isList := conf["plugins"]; isList {
		return c.Conf, nil
	}
	return json.Marshal(map[string]any{"cniVersion": conf["cniVersion"], "name": conf["name"], "plugins": []any{conf}})
}

// customPlugins are the programs that a user's configuration runs.
func customPlugins(c *CustomAttach) ([]string, error) {
	if c == nil {
		return nil, errors.New("contender custom: no configuration; give one with --cni-conf FILE")
	}
	raw, err := c.list()
	if err != nil {
		return nil, err
	}
	list, err := libcni.NetworkConfFromBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: no CNI configuration: %w", c.File, err)
	}
	var names []string
	for _, p := range list.Plugins {
		names = append(names, p.Network.Type)
		if ipam := p.Network.IPAM.Type; ipam != "" {
			names = append(names, ipam)
		}
	}
	return names, nil
}

// Contender is the user's configuration as a contender.
func (c *CustomAttach) Contender() *contender.Contender {
	x := &contender.Contender{
		ID: CustomID, Product: filepath.Base(c.File), Summary: "the CNI configuration " + c.File,
		Features: contender.Features{Encryption: "none", Status: "active"},
		Datapath: contender.Datapath{Attach: "cni", Transport: "none", Services: "none"},
		Lab:      contender.Lab{Own: []string{"the CNI plugins that the configuration names"}},
	}
	if c.Transport != "" {
		x.Datapath.Transport = c.Transport
		x.Lab.Transport = &contender.Piece{Use: c.Transport}
		x.Lab.Reproduced = []string{"transport between the nodes: " + c.Transport}
		if c.Transport == "vxlan" {
			x.Datapath.Overhead = 50
		}
	}
	return x
}
