//go:build linux

package tunnel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/host"
)

// Flanneld runs flannel's own daemon on every node, with etcd on the first node.
// The daemon itself sets up everything between the nodes, masquerading included.
// Each daemon asks for its node's pod network, as it does after a restart, so that pods have the
// same addresses as with every other contender.
//
// Parameters: type is the backend; port and vni are settings of flannel's net-conf.json
// (Documentation/backends.md).
var Flanneld = wire.Transport{
	Name:    "flanneld",
	Summary: "flannel's own daemon on every node with etcd on the first; the backend is a parameter",
	Params:  []string{"type", "port", "vni"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		first := f.Nodes[0]
		etcd := netip.AddrPortFrom(first.Addr.Addr(), 2379)
		url := "http://" + etcd.String()
		store, err := first.Daemon(host.Command{OffMeasuredCPUs: true, Argv: []string{
			"etcd", "--data-dir", filepath.Join(first.Dir, "etcd"), "--log-outputs", "stderr", "--logger", "zap",
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:2380",
		}})
		if err != nil {
			return fmt.Errorf("flanneld: %w", err)
		}
		put := func() error { return etcdPut(first, etcd, flannelKey, flannelConfig(f, p)) }
		if err := waitFor(ctx, store, put); err != nil {
			return fmt.Errorf("flanneld: etcd: %w", err)
		}
		for _, n := range f.Nodes {
			if err := startFlanneld(ctx, f, n, url); err != nil {
				return fmt.Errorf("flanneld: %s: %w", n.Name, err)
			}
		}
		return nil
	},
}

// flannelKey is the key under which flanneld reads its configuration (--etcd-prefix).
const flannelKey = "/coreos.com/network/config"

// flannelConfig returns flanneld's configuration of the network.
func flannelConfig(f *wire.Fabric, p wire.Params) string {
	backend := map[string]any{"Type": p.Text("type", "vxlan")}
	for ours, theirs := range map[string]string{"port": "Port", "vni": "VNI"} {
		if v := p.Int(ours, 0); v != 0 {
			backend[theirs] = v
		}
	}
	text, err := json.Marshal(map[string]any{
		"Network": f.PodNetwork.String(), "SubnetLen": f.Nodes[0].PodCIDR.Bits(),
		// By default flannel does not use the first subnet.
		"SubnetMin": f.PodNetwork.Masked().Addr().String(), "Backend": backend,
	})
	if err != nil {
		panic(err) // texts and numbers only
	}
	return string(text)
}

// startFlanneld starts the node's daemon and returns when it has the lease of the
// node's pod network.
func startFlanneld(ctx context.Context, f *wire.Fabric, n *wire.Node, etcd string) error {
	file := filepath.Join(n.Dir, "subnet.env")
	before := fmt.Sprintf("%s=%s\n%s=%s\n", envNetwork, f.PodNetwork, envSubnet, netip.PrefixFrom(wire.GatewayOf(n.PodCIDR), n.PodCIDR.Bits()))
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		return err
	}
	daemon, err := n.Daemon(host.Command{
		Argv: []string{"flanneld", "--etcd-endpoints", etcd, "--iface", wire.UplinkName, "--subnet-file", file, "--ip-masq"},
		Env:  []string{"WIREGUARD_KEY_FILE=" + filepath.Join(n.Dir, "wgkey")},
	})
	if err != nil {
		return err
	}
	var lease map[string]string
	err = waitFor(ctx, daemon, func() error {
		text, err := os.Open(file)
		if err != nil {
			return err
		}
		defer text.Close()
		if lease, err = readEnv(text); err == nil && lease[envMTU] == "" {
			err = errors.New("flanneld has no lease of a subnet yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	offers := f.MTU - f.Overhead // the user may ask for a smaller MTU of pods
	got, err := netip.ParsePrefix(lease[envSubnet])
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	case got.Masked() != n.PodCIDR.Masked():
		return fmt.Errorf("it leased %s, not %s as asked", got.Masked(), n.PodCIDR)
	case lease[envMTU] != fmt.Sprint(offers):
		return fmt.Errorf("it gives pods an MTU of %s; the contender's overhead of %d bytes leaves %d", lease[envMTU], f.Overhead, offers)
	}
	return nil
}

// The keys of subnet.env, the file by which flannel configures the CNI plugin.
const (
	envNetwork = "FLANNEL_NETWORK"
	envSubnet  = "FLANNEL_SUBNET"
	envMTU     = "FLANNEL_MTU"
)

// readEnv reads lines of KEY=value.
func readEnv(r io.Reader) (map[string]string, error) {
	env := map[string]string{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "="); ok && key != "" {
			env[key] = value
		}
	}
	return env, lines.Err()
}

// etcdPut writes a key through etcd's JSON interface.
func etcdPut(n *wire.Node, etcd netip.AddrPort, key, value string) error {
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": []byte(value)}) // the values become base64
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+etcd.String()+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return n.NS.Do(func() error {
		// The socket is made in this goroutine, so it is the node's.
		c, err := net.Dial("tcp4", etcd.String())
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if err := req.Write(c); err != nil {
			return err
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("put %s: %s", key, answer.Status)
		}
		return nil
	})
}

// waitFor calls ask until it returns no error or the daemon has ended.
func waitFor(ctx context.Context, daemon host.Process, ask func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case end := <-ended:
			if end == nil {
				end = errors.New("the daemon ended without an error")
			}
			return end
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
