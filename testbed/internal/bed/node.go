//go:build linux

package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// nodeConfig is what the supervisor tells a node, on its fourth descriptor.
type nodeConfig struct {
	ID        string  // of the test bed
	Dir       string  // its state folder
	Options   Options // of Up
	Node      Node    //
	Programs  string  // folder of Kubernetes' programs
	KubeProxy string  // mode, or "none"
	Routes    bool    // start with the standard plugins' configuration
	CA        []byte  // certificate
	Kubelet   []byte  // kubeconfig
	Proxy     []byte  // kubeconfig
}

const (
	configFD       = 3
	nodeConfigFile = "/run/testbed-node.json"
)

// EnterNode makes this process, the init of a node's fresh namespaces, see the
// node only, and then becomes RunNode. It returns when that failed.
func EnterNode() error {
	// A cgroup namespace is a thread's; this one goes through exec.
	runtime.LockOSThread()
	input := os.NewFile(configFD, "config")
	var config nodeConfig
	if err := json.NewDecoder(input).Decode(&config); err != nil {
		return fmt.Errorf("node: configuration: %w", err)
	}
	if err := input.Close(); err != nil {
		return err
	}
	if err := enterNode(config); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	argv := []string{nodeFiles + "/testbed", "internal-node-run"}
	return fmt.Errorf("%s: exec %s: %w", config.Node.Name, argv[0], unix.Exec(argv[0], argv, nodeEnv()))
}

func enterNode(config nodeConfig) error {
	if err := unix.Sethostname([]byte(config.Node.Name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := joinGroup(groupName(config.ID), config.Node.Name); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cgroup namespace: %w", err)
	}
	if err := privateMounts(); err != nil {
		return err
	}
	if err := nodeRoot(config.Dir, config.Node, config.Programs); err != nil {
		return err
	}
	if err := emptyNodeRoot(); err != nil {
		return err
	}
	content, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(nodeConfigFile, content, 0o600)
}

// RunNode is a node's init: it starts containerd, kubelet and kube-proxy, and
// never returns without an error.
func RunNode() error {
	content, err := os.ReadFile(nodeConfigFile)
	if err != nil {
		return err
	}
	var config nodeConfig
	if err := json.Unmarshal(content, &config); err != nil {
		return err
	}
	proxy := make(chan os.Signal, 8)
	signal.Notify(proxy, kubeProxyOff, kubeProxyOn)
	if err := writeNodeFiles(config); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	if err := sysctls(map[string]string{"net/ipv4/ip_forward": "1"}); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	// kubelet makes it with the first pod, and misses it before.
	if err := makeGroup(podsGroup); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	k := newKeeper()
	const logs = "/var/log"
	if _, err := k.keep(logs, "containerd", []string{"containerd", "--config", "/etc/kubernetes/containerd.toml"}); err != nil {
		return err
	}
	if err := importPause(k, config.Options.limit(30*time.Second)); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	if err := waitForSelf(config); err != nil {
		return fmt.Errorf("%s: %w", config.Node.Name, err)
	}
	if _, err := k.keep(logs, "kubelet", kubeletArgs(config.Node)); err != nil {
		return err
	}
	return runKubeProxy(k, logs, config.KubeProxy != "none", proxy)
}

// Signals to a node's init.
const (
	kubeProxyOff = unix.SIGUSR1
	kubeProxyOn  = unix.SIGUSR2
)

// runKubeProxy starts and stops kube-proxy as the signals ask for.
func runKubeProxy(k *keeper, logs string, on bool, signals <-chan os.Signal) error {
	var running *daemon
	for {
		switch {
		case on && running == nil:
			var err error
			if running, err = k.keep(logs, "kube-proxy", kubeProxyArgs); err != nil {
				return err
			}
		case !on && running != nil:
			running.stop()
			running = nil
			log, err := os.OpenFile(logs+"/kube-proxy.log", os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			if err := k.run(kubeProxyCleanup, log); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			log.Close()
		}
		on = <-signals == kubeProxyOn
	}
}

func writeNodeFiles(config nodeConfig) error {
	proxyMode := config.KubeProxy
	if proxyMode == "none" {
		proxyMode = "" // its default, when it is started later
	}
	for path, content := range map[string]string{
		"/etc/kubernetes/ca.crt":                string(config.CA),
		"/etc/kubernetes/containerd.toml":       containerdConfig,
		"/etc/kubernetes/kubelet.yaml":          kubeletConfig(config.Options),
		"/etc/kubernetes/kubelet.kubeconfig":    string(config.Kubelet),
		"/etc/kubernetes/kube-proxy.yaml":       kubeProxyConfig(config.Node, proxyMode),
		"/etc/kubernetes/kube-proxy.kubeconfig": string(config.Proxy),
		// Nothing resolves names for pods: without a server there is no waiting.
		"/etc/kubernetes/resolv.conf": "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/etc/cni/net.d", "/opt/cni/bin", "/run/lock", "/run/netns"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, name := range standardPlugins {
		program, err := os.ReadFile("/usr/lib/cni/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("/opt/cni/bin", name), program, 0o755); err != nil {
			return err
		}
	}
	if config.Routes {
		return writeConflist("/", config.Node)
	}
	return nil
}

// importPause gives containerd the image without which it starts no pod, as
// soon as it answers. It has it already on a node that was stopped.
func importPause(k *keeper, limit time.Duration) error {
	log, err := os.OpenFile("/var/log/import.log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	return retry(limit, func(context.Context) error { return k.run(importCommand(nodeFiles+"/pause.tar"), log) })
}

// waitForSelf waits until the API server knows this node, which the supervisor
// tells it: a kubelet that is early tries again only after seconds.
func waitForSelf(config nodeConfig) error {
	client, err := newClient(config.Kubelet, config.Options)
	if err != nil {
		return err
	}
	return retry(config.Options.limit(5*time.Minute), func(ctx context.Context) error {
		return client.do(ctx, http.MethodGet, "/api/v1/nodes/"+config.Node.Name, nil, nil)
	})
}

// retry tries until there is no error or the time is over.
func retry(limit time.Duration, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("gave up after %s", limit)
			}
			return fmt.Errorf("gave up after %s: %s", limit, strings.TrimSpace(err.Error()))
		case <-time.After(max(100*time.Millisecond, limit/1200)): // a slow machine has better things to do
		}
	}
}
