//go:build linux

package bed

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// KubernetesVersion is what testbed/kubernetes/go.mod pins.
const KubernetesVersion = "v1.34.4"

// kubernetesNames are the programs that testbed/kubernetes is.
var kubernetesNames = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}

// kubernetesFlags tell the programs their version, which else says v0.0.0; what
// is installed on a cluster goes by it.
var kubernetesFlags = []string{"-ldflags", "-s -w " + stamp("k8s.io/component-base/version") + " " + stamp("k8s.io/client-go/pkg/version")}

func stamp(pkg string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean", pkg, KubernetesVersion, major, minor)
}

// machinePrograms are taken from the machine. cnibench's internal/host/programs lists
// them for its profile test-kube, with their packages.
var machinePrograms = []string{
	"etcd", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "iptables", "nft", "nsenter", "mount", "/usr/lib/cni/bridge",
}

const etcdURL = "http://127.0.0.1:2379"

// etcdArgs: its data lies in memory and is not meant to last.
func etcdArgs(etcd, data string) []string {
	return []string{etcd, "--data-dir", data,
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
		"--initial-cluster", "default=http://127.0.0.1:2380",
		"--quota-backend-bytes", "1073741824", "--logger", "zap", "--log-level", "warn",
	}
}

func apiServerArgs(programs, pki string) []string {
	file := func(name string) string { return filepath.Join(pki, name) }
	return []string{filepath.Join(programs, "kube-apiserver"),
		"--etcd-servers=" + etcdURL,
		"--advertise-address=" + controlAddr.String(),
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--tls-cert-file=" + file("apiserver.crt"), "--tls-private-key-file=" + file("apiserver.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--kubelet-client-certificate=" + file("admin.crt"), "--kubelet-client-key=" + file("admin.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("tokens.key"), "--service-account-signing-key-file=" + file("tokens.key"),
		"--service-cluster-ip-range=" + servicePfx.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}
}

// controllerArgs: a node counts as gone after 20 s instead of 50, so that tests
// of it don't wait for long; its pods are evicted after 30 s instead of 300
// only where they say so themselves.
func controllerArgs(programs, pki string, o Options) []string {
	return []string{filepath.Join(programs, "kube-controller-manager"),
		"--kubeconfig=" + filepath.Join(pki, "controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + filepath.Join(pki, "tokens.key"),
		"--root-ca-file=" + filepath.Join(pki, "ca.crt"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=true", "--cluster-cidr=" + podPrefix.String(),
		"--service-cluster-ip-range=" + servicePfx.String(),
		"--node-monitor-grace-period=" + o.limit(20*time.Second).String(), "--node-monitor-period=2s",
		"--leader-elect=false", "--bind-address=127.0.0.1", "--profiling=false",
	}
}

func schedulerArgs(programs, pki string) []string {
	return []string{filepath.Join(programs, "kube-scheduler"),
		"--kubeconfig=" + filepath.Join(pki, "scheduler.kubeconfig"),
		"--leader-elect=false", "--bind-address=127.0.0.1", "--profiling=false",
	}
}

// pauseImage holds the program that keeps a pod's namespaces.
const pauseImage = "localhost/cnibench-testbed/pause:1"

// containerdConfig: without CAP_SYS_RESOURCE, runc dies when it is asked for a
// lower OOM score than its own.
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`

// podsGroup is the cgroup of a node's pods, below the node's own.
const podsGroup = "pods"

// kubeletConfig returns kubelet's: pods' cgroups lie flat below one of the node's own, nothing is
// evicted for the machine's sake, and a node reports often enough for its end
// to be noticed soon.
func kubeletConfig(o Options) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /etc/kubernetes/ca.crt}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: /etc/kubernetes/resolv.conf
cgroupDriver: cgroupfs
cgroupRoot: /%s
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
evictionHard: {imagefs.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
nodeStatusUpdateFrequency: %s
nodeLeaseDurationSeconds: %.0f
runtimeRequestTimeout: %s
logging: {verbosity: 1}
`, podsGroup, o.limit(5*time.Second), o.limit(16*time.Second).Seconds(), o.limit(2*time.Minute))
}

func kubeletArgs(n Node) []string {
	return []string{nodePrograms + "/kubelet",
		"--config=/etc/kubernetes/kubelet.yaml",
		"--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.Addr.String(),
	}
}

// kubeProxyConfig: the sizes of the connection table are the machine's, not a
// namespace's, and stay as they are.
func kubeProxyConfig(n Node, mode string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: %s
hostnameOverride: %s
clusterCIDR: %s
oomScoreAdj: 0
clientConnection: {kubeconfig: /etc/kubernetes/kube-proxy.kubeconfig}
conntrack: {maxPerCore: 0, tcpCloseWaitTimeout: 0s, tcpEstablishedTimeout: 0s}
`, mode, n.Name, podPrefix)
}

var (
	kubeProxyArgs    = []string{nodePrograms + "/kube-proxy", "--config=/etc/kubernetes/kube-proxy.yaml"}
	kubeProxyCleanup = append(append([]string(nil), kubeProxyArgs...), "--cleanup")
)

// standardPlugins are copied to /opt/cni/bin of a node, where products put
// theirs too.
var standardPlugins = []string{"bridge", "host-local", "loopback", "portmap", "bandwidth", "firewall", "tuning", "ptp"}
