package run

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	DefaultNamespace   = "cnibench"         // begins the names of the namespaces that runs make
	DefaultServiceKind = kube.ClusterIP     // of the path service
	ThisCluster        = kube.ThisClusterID // the contender that is the cluster's own pod network
)

// ServiceKinds are the kinds of Services of the path service.
var ServiceKinds = []string{kube.ClusterIP, kube.NodePort, kube.Headless}

// Cluster holds the flags of the arena kube.
type Cluster struct {
	Kubeconfig, Context string
	RequestTimeout      time.Duration
	NodeLabel, Pod, To  string // which nodes

	Image, PullPolicy, Namespace string
	Within                       []string // of --namespace
	CPU, Memory, Service         string
	Tolerations                  []string
	Privileged, Anonymous        bool

	Install, Scratch bool
	AcceptUnpinned   bool
	Mirror, Versions string
	Facts            map[string]string
}

// NodeNames returns the names that --nodes lists, or nil if it was not given.
func NodeNames(value string, given bool) ([]string, error) {
	if !given {
		return nil, nil
	}
	var names []string
	for _, name := range strings.Split(value, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if _, err := strconv.Atoi(value); err == nil || len(names) == 0 {
		return nil, exit.Usage("--nodes %s: a cluster's nodes are named, as in --nodes a,b; `kubectl get nodes` lists them", value)
	}
	return names, nil
}

// Options returns the flags as package kube takes them.
func (k *Cluster) Options(nodes []string) kube.Options {
	return kube.Options{
		Kubeconfig: k.Kubeconfig, Context: k.Context, RequestTimeout: k.RequestTimeout, Nodes: nodes, NodeLabel: k.NodeLabel, Pod: k.Pod, To: k.To, Image: k.Image, PullPolicy: k.PullPolicy, Namespace: k.Namespace, Within: k.Within,
		Tolerations: k.Tolerations, CPU: k.CPU, Memory: k.Memory, Service: k.Service, Privileged: k.Privileged, Anonymous: k.Anonymous,
	}
}

// Contexts returns the names of the kubeconfig's contexts, for completion.
func (k *Cluster) Contexts() []string { return kube.Contexts(k.Options(nil)) }

// Names returns the names of the cluster's objects of that resource, for completion.
func (k *Cluster) Names(ctx context.Context, resource string) []string {
	return kube.Names(ctx, k.Options(nil), resource)
}

// Installer returns the installer of contenders on the cluster.
func (k *Cluster) Installer(log func(string, ...any)) (*install.Installer, error) {
	state, err := tune.StateDir()
	if err != nil {
		return nil, err
	}
	i, err := install.New(install.Options{
		Versions: k.Versions, Mirror: k.Mirror, Scratch: k.Scratch, Facts: k.Facts, Log: log,
		AcceptUnpinned: k.AcceptUnpinned, Digests: filepath.Join(state, "unpinned.json"),
	})
	return i, KubeError(err)
}

// CheckContext returns an error if the kubeconfig has no such context. It contacts no cluster.
func (k *Cluster) CheckContext() error {
	return KubeError(kube.CheckContext(kube.Options{Kubeconfig: k.Kubeconfig, Context: k.Context}))
}

// RBAC returns the rights that a run in the cluster needs, as Kubernetes objects in YAML.
func (k *Cluster) RBAC() ([]byte, error) {
	options := kube.Options{Namespace: k.Namespace, Within: k.Within}
	if k.Install {
		installer, err := k.Installer(nil)
		if err != nil {
			return nil, err
		}
		options.Install = installer
	}
	text, err := kube.RBAC(options)
	return text, KubeError(err)
}

// link returns the rate and the MTU (bytes) that the flags give for the nodes' links; 0 if
// they give none.
func (f *Request) link() (rate unit.BitRate, mtu int, err error) {
	if f.LineRate != "" {
		if rate, err = unit.ParseBitRate(f.LineRate); err != nil {
			return 0, 0, exit.Usage("--line-rate: %v", err)
		}
	}
	size := unit.Bytes(0)
	if f.MTU != "" {
		if size, err = unit.ParseBytes(f.MTU); err != nil {
			return 0, 0, exit.Usage("--mtu: %v", err)
		}
	}
	return rate, int(size), nil
}
