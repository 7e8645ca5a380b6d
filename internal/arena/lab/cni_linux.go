package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/all"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// usePodCIDR in a configuration stands for the node's own pod network, as
// kubelet's and Multus' users know it from host-local.
const usePodCIDR = "usePodCidr"

// attach gives the pod its interface.
func (n *labNetwork) attach(ctx context.Context, node *wire.Node, box *linux.NetNS, name string) (addr netip.Addr, err error) {
	a, pod := n.pieces.attach, &wire.Pod{Name: name, Node: node, NS: box}
	for _, other := range n.fabric.Pods {
		if other.Node == node {
			pod.Nth++
		}
	}
	if a.Plug != nil {
		addr, err = a.Plug(ctx, n.fabric, pod, n.pieces.attachParams)
	} else {
		addr, err = n.cni(ctx, node, box, name)
	}
	if err != nil {
		return addr, fmt.Errorf("attach %s: %w", name, err)
	}
	pod.Addr = addr
	n.fabric.Pods = append(n.fabric.Pods, pod)
	for i, t := range n.pieces.transports {
		if t.Attached == nil {
			continue
		}
		if err := t.Attached(ctx, n.fabric, pod, n.pieces.params[i]); err != nil {
			return addr, err
		}
	}
	return addr, nil
}

// cni runs the CNI plugins that give the pod its interface, inside the node's
// namespace as a container runtime on that node would.
func (n *labNetwork) cni(ctx context.Context, node *wire.Node, pod *linux.NetNS, name string) (netip.Addr, error) {
	raw, err := json.Marshal(n.pieces.attach.Conf(n.fabric, node, n.pieces.attachParams))
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
	cni := libcni.NewCNIConfigWithCacheDir(host.CNIPath(), filepath.Join(n.dir, "cni-cache"), nil)
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
	return addr, err
}

// localize returns the configuration with dataDir as the folder in which every
// host-local plugin keeps its addresses, and podCIDR in the place of usePodCIDR.
func localize(raw []byte, dataDir string, podCIDR netip.Prefix) ([]byte, error) {
	var conf any
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, err
	}
	setDataDir(conf, dataDir)
	return json.Marshal(replaceText(conf, usePodCIDR, podCIDR.String()))
}

// setDataDir sets the folder of every host-local plugin, also of those in a
// delegate's configuration.
func setDataDir(v any, dataDir string) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "host-local" {
			v["dataDir"] = dataDir
		}
		for _, e := range v {
			setDataDir(e, dataDir)
		}
	case []any:
		for _, e := range v {
			setDataDir(e, dataDir)
		}
	}
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

// NewCustom reads a user's CNI configuration, conf, which was read from file.
// transport is the lab transport that joins the nodes; "": nothing joins them.
func NewCustom(file string, conf []byte, transport string) (*CustomAttach, error) {
	c := &CustomAttach{File: file, Conf: conf, Transport: transport}
	if transport != "" {
		if _, err := all.LookupTransport(transport); err != nil {
			return nil, err
		}
	}
	_, err := c.attachment()
	return c, err
}

// attachment returns the configuration as a datapath piece.
func (c *CustomAttach) attachment() (wire.Attach, error) {
	if c == nil {
		return wire.Attach{}, errors.New("contender custom: no configuration; give one with --cni-conf FILE")
	}
	var conf map[string]any
	if err := json.Unmarshal(c.Conf, &conf); err != nil {
		return wire.Attach{}, fmt.Errorf("%s: no CNI configuration: %w", c.File, err)
	}
	if _, isList := conf["plugins"]; !isList { // the configuration of a single plugin
		conf = map[string]any{"cniVersion": conf["cniVersion"], "name": conf["name"], "plugins": []any{conf}}
	}
	raw, err := json.Marshal(conf)
	if err != nil {
		return wire.Attach{}, err
	}
	list, err := libcni.NetworkConfFromBytes(raw)
	if err != nil {
		return wire.Attach{}, fmt.Errorf("%s: no CNI configuration: %w", c.File, err)
	}
	a := wire.Attach{Name: CustomID, Summary: "the CNI configuration " + c.File}
	for _, p := range list.Plugins {
		a.Plugins = append(a.Plugins, host.CNI(p.Network.Type))
		if ipam := p.Network.IPAM.Type; ipam != "" {
			a.Plugins = append(a.Plugins, host.CNI(ipam))
		}
	}
	a.Conf = func(*wire.Fabric, *wire.Node, wire.Params) map[string]any { return conf }
	return a, nil
}

// Contender returns the user's configuration as a contender.
func (c *CustomAttach) Contender() *contender.Contender {
	x := &contender.Contender{
		ID: CustomID, Product: filepath.Base(c.File), Summary: "the CNI configuration " + c.File,
		Features: contender.Features{Encryption: "none", Status: "active"},
		Datapath: contender.Datapath{Attach: "cni", Transport: "none", Services: "none"},
		Lab:      contender.Lab{Attach: &contender.Piece{Use: CustomID}, Own: []string{"the CNI plugins that the configuration names"}},
	}
	if c.Transport == "" {
		return x
	}
	x.Datapath.Transport = c.Transport
	x.Lab.Transport = &contender.Piece{Use: c.Transport}
	x.Lab.Reproduced = []string{"transport between the nodes: " + c.Transport}
	switch c.Transport {
	case "vxlan":
		x.Datapath.Overhead, x.Requires.Kernel = vxlanOverhead, []string{"vxlan"}
	case "routes":
		x.Requires.Underlay = UnderlaySwitch
	}
	return x
}

// vxlanOverhead is bytes a packet over IPv4: inner Ethernet 14, VXLAN 8, UDP 8,
// IPv4 20 (RFC 7348).
const vxlanOverhead = 50
