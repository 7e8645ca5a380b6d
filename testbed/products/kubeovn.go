//go:build linux

package products

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/testbed/internal/bed"
	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// kubeOVNModule holds Kube-OVN, its chart and the scripts of its image.
var kubeOVNModule = module{
	path:    "github.com/kubeovn/kube-ovn",
	version: "v1.12.16",
	sum:     "h1:7EPq2fP4kryt0nxyl9SAYg1c33iXuRyOK3MXfwhJVmk=",
}

// kubeOVNImage has the published name, so that the published chart installs it unmodified.
const kubeOVNImage = "docker.io/kubeovn/kube-ovn"

var kubeOVN = source{
	name:    "kube-ovn",
	files:   chartFiles(kubeOVNModule, "https://kubeovn.github.io/kube-ovn", kubeOVNChanges, "charts/kube-ovn"),
	images:  kubeOVNImages,
	named:   []string{kubeOVNImage + ":" + kubeOVNModule.version},
	network: "01-kube-ovn.conflist",
	cleanup: `
for daemon in ovs-vswitchd ovsdb-server ovn-controller ovn-northd; do pkill -x $daemon; done
for try in 1 2 3 4 5; do pgrep -x 'ovs-vswitchd|ovsdb-server|ovn-controller|ovn-northd' >/dev/null || break; sleep 1; done
ovs-dpctl del-dp ovs-system 2>/dev/null
ip link set eth1 down promisc off
for device in br-phy br-int ovn0 mirror0 ovs-netdev genev_sys_6081 $(ip -o link show type veth | awk -F': ' '{print $2}' | cut -d@ -f1 | grep '_h$'); do
	ip link delete $device 2>/dev/null
done
drop_chains 'OVN-\|ovn[46]0\|dport 6081\|ovn-subnet-gateway\|TCPMSS --set-mss'
destroy_sets '^ovn[46]0'
rm -rf /run/openvswitch /run/ovn /etc/origin/openvswitch /etc/origin/ovn /var/log/openvswitch /var/log/ovn /var/log/kube-ovn
rm -f /opt/cni/bin/kube-ovn /opt/cni/bin/macvlan /usr/local/bin/kubectl-ko
`,
	kinds: ".kubeovn.io",
	marks: "ovn.kubernetes.io/",
	apart: true,
	products: []product{
		kubeOVNProduct("kubeovn", product{modules: []string{"openvswitch", "geneve"}}),
		kubeOVNProduct("kubeovn-userspace", product{prepare: kubeOVNUserspace, annotation: "ovn.kubernetes.io/tunnel_interface=br-phy", link: bed.SecondLink}),
	},
}

// kubeOVNProduct completes what differs between the products.
func kubeOVNProduct(name string, p product) product {
	p.name, p.namespace = name, "kube-system"
	p.values = func(c cluster) map[string]any {
		return map[string]any{
			"MASTER_NODES": c.first.String(),
			"ipv4": map[string]any{
				"POD_CIDR": c.pods.String(), "POD_GATEWAY": c.pods.Addr().Next().String(), "SVC_CIDR": c.services.String(),
			},
		}
	}
	p.workloads = []string{
		"daemonset/kube-ovn-pinger", "deployment/kube-ovn-monitor", "deployment/kube-ovn-controller",
		"daemonset/kube-ovn-cni", "daemonset/ovs-ovn", "deployment/ovn-central",
	}
	p.label = "kube-ovn/role=master" // whose node has OVN's databases
	p.kubeProxy, p.policies, p.wire = true, true, "udp 6081"
	return p
}

// kubeOVNUserspace has Open vSwitch forward in user space, for a kernel that lacks its
// datapath: what an operator sets up on a node of Kube-OVN with DPDK (its
// dist/images/start-ovs-dpdk-v2.sh), without DPDK. The tunnel leaves by a device that is a
// port of Open vSwitch, of which the node's own traffic is independent. OVS gets the
// bridges and their datapath with its database, and br-phy's address with the device.
func kubeOVNUserspace(node int) string {
	return fmt.Sprintf(`set -e
mkdir -p /etc/origin/openvswitch
rm -f /etc/origin/openvswitch/conf.db
ovsdb-tool create /etc/origin/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server --detach --no-chdir --pidfile=/run/prepare.pid --unixctl=/run/prepare.ctl --remote=punix:/run/prepare.sock --log-file=/dev/null /etc/origin/openvswitch/conf.db
ovs-vsctl --db=unix:/run/prepare.sock --no-wait init -- set Open_vSwitch . external_ids:ovn-bridge-datapath-type=netdev \
	-- add-br br-int -- set Bridge br-int datapath_type=netdev fail_mode=secure \
	-- add-br br-phy -- set Bridge br-phy datapath_type=netdev fail_mode=standalone -- add-port br-phy eth1
ovs-appctl --target=/run/prepare.ctl exit
[ -e /sys/class/net/br-phy ] || ip tuntap add br-phy mode tap
ip address replace 172.30.0.%d/24 dev br-phy
ip link set br-phy up
ip link set eth1 up
`, node)
}

// kubeOVNChanges are what of Kube-OVN's chart is not as published.
var kubeOVNChanges = []change{
	{"func.LS_DNAT_MOD_DL_DST", false, "a patch of its own OVN; the image has Debian's"},
	{"func.LS_CT_SKIP_DST_LPORT_IPS", false, "the same"},
}

func kubeOVNImages(ctx context.Context, log logf) ([]string, error) {
	module, err := kubeOVNModule.download(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := build.SourceDir("products/kube-ovn")
	if err != nil {
		return nil, err
	}
	built, err := build.Programs(ctx, build.Source{
		Dir:      folder,
		Version:  kubeOVNModule.version,
		Packages: []string{kubeOVNModule.path + "/cmd", kubeOVNModule.path + "/cmd/cni"},
		Env:      []string{"GONOSUMDB=github.com/kubeovn"}, // go.sum has them
	}, log)
	if err != nil {
		return nil, err
	}
	files, err := kubeOVNTree(module, folder, built)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", kubeOVNImage, err)
	}
	path, err := tarball(kubeOVNImage+":"+kubeOVNModule.version, "kube-ovn", files, v1.Config{WorkingDir: "/kube-ovn"}, log)
	return []string{path}, err
}

// kubeOVNTree returns what the module's dist/images/Dockerfile puts together, with Debian's
// Open vSwitch and OVN, which lack Kube-OVN's patches, in the place of its own, and folder's
// modinfo.
func kubeOVNTree(module, folder, built string) (*image.Tree, error) {
	extensions, err := iptablesExtensions()
	if err != nil {
		return nil, err
	}
	tree := image.NewTree()
	missing, err := tree.AddPackages("/", []string{
		"openvswitch-common", "openvswitch-switch", "ovn-common", "ovn-host", "ovn-central",
		"coreutils", "grep", "hostname", "procps", "sed", // of the scripts
	})
	if err == nil && missing != nil {
		err = fmt.Errorf("%s: not installed; scripts/setup test-products installs what is needed", strings.Join(missing, ", "))
	}
	if err != nil {
		return nil, err
	}
	err = addPrograms(tree, append(extensions,
		"ovs-vswitchd", "uuidgen", "ip", "tc", "ethtool", "ipset", "modprobe", "lsmod",
		"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "iptables-nft", "iptables-legacy",
		"sh", "bash", "awk",
	)...)
	if err != nil {
		return nil, err
	}
	tree.AddText("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
	tree.AddText("/etc/group", "root:x:0:\n")
	tree.AddLink("/kube-ovn/kmod/modinfo", "/bin/kmod")
	tree.AddProgram("/usr/sbin/modinfo", filepath.Join(folder, "modinfo"))
	tree.AddLink("/var/run", "/run")
	tree.AddLink("/var/lib/ovn", "/etc/ovn") // the databases: Debian's place, Kube-OVN's place
	scripts, err := filepath.Glob(filepath.Join(module, "dist", "images", "*.sh"))
	if err != nil {
		return nil, err
	}
	for _, script := range append(scripts, filepath.Join(module, "dist", "images", "kubectl-ko"), filepath.Join(module, "dist", "images", "01-kube-ovn.conflist")) {
		tree.AddProgram("/kube-ovn/"+filepath.Base(script), script)
	}
	tree.AddProgram("/usr/share/ovn/scripts/grace_stop_ovn_controller", filepath.Join(module, "dist", "images", "grace_stop_ovn_controller"))
	tree.AddProgram("/kube-ovn/kube-ovn", filepath.Join(built, "cni"))
	tree.AddProgram("/kube-ovn/kube-ovn-cmd", filepath.Join(built, "cmd"))
	for _, name := range []string{"controller", "daemon", "monitor", "pinger", "controller-healthcheck", "leader-checker"} {
		tree.AddLink("/kube-ovn/kube-ovn-"+name, "kube-ovn-cmd")
	}
	for _, plugin := range []string{"loopback", "portmap", "macvlan"} {
		path, err := findProgram("/usr/lib/cni/" + plugin)
		if err != nil {
			return nil, err
		}
		tree.AddProgram("/"+plugin, path)
	}
	for _, dir := range []string{"/etc/openvswitch", "/etc/ovn", "/var/log/openvswitch", "/var/log/ovn", "/var/lib/openvswitch", "/run/openvswitch", "/run/ovn"} {
		tree.AddDir(dir, 0o755)
	}
	tree.AddDir("/tmp", fs.ModeSticky|0o777)
	return tree, nil
}
