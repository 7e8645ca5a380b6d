package programs

import (
	"maps"
	"slices"
)

var (
	openVSwitch = []string{"ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovsdb-tool", "ovs-appctl"}
	ovn         = slices.Concat([]string{"ovn-northd", "ovn-nbctl", "ovn-sbctl", "ovn-controller"}, openVSwitch)
)

// pieces are the programs that each datapath piece of package wire runs.
var pieces = map[string][]string{
	// Attachments.
	"bridge":      {"cni/bridge", "cni/host-local"},
	"ptp":         {"cni/ptp", "cni/host-local"},
	"macvlan":     {"cni/macvlan", "cni/host-local"},
	"ipvlan":      {"cni/ipvlan", "cni/host-local"},
	"weave":       {"ovs-dpctl"},
	"veth-ebpf":   nil,
	"netkit-ebpf": nil,
	"ptp-ebpf":    nil,
	"antrea":      openVSwitch,
	"ovn":         ovn, // its Services too

	// Transports and extras.
	"routes":          nil,
	"vpc-routes":      nil,
	"vxlan":           nil,
	"ipip":            nil,
	"wireguard":       nil,
	"esp":             nil,
	"flanneld":        {"flanneld", "etcd", "iptables"},
	"weave-guard":     {"iptables-restore"},
	"ebpf-vxlan":      nil,
	"ebpf-routes":     nil,
	"ebpf-wireguard":  nil,
	"ebpf-device":     nil,
	"ebpf-notrack":    nil,
	"masquerade":      nil,
	"policy-chains":   {"iptables-nft-restore"},
	"sysctl":          nil,
	"default-route":   nil,
	"antrea-tunnel":   openVSwitch,
	"antrea-gateway":  openVSwitch,
	"ovn-overlay":     ovn,
	"ovn-localnet":    ovn,
	"ovn-service-nat": nil,
	"tunnel-notrack":  nil,

	// Services.
	"kube-proxy-iptables": {"iptables-nft-restore", "iptables-legacy-restore", "nft"},
	"kube-proxy-nftables": {"nft"},
	"ipvs":                {"ipvsadm", "ipset", "iptables-nft-restore"},
	"ebpf":                nil,
	"ebpf-nat":            nil,
	"antrea-proxy":        openVSwitch,
}

// Piece lists what the datapath piece of that name runs; ok says that the piece has a row.
func Piece(name string) (programs []string, ok bool) {
	programs, ok = pieces[name]
	return programs, ok
}

// workloads are the programs that each workload runs at its endpoints.
var workloads = map[string][]string{
	"idle":       nil,
	"tcp_stream": {"iperf3"},
	"udp_stream": {"iperf3"},
	"tcp_bulk":   nil,
	"udp_bulk":   nil,
	"tcp_lat":    {"qperf"},
	"udp_lat":    {"qperf"},
	"tcp_bw":     {"qperf"},
	"udp_bw":     {"qperf"},
	"http_rate":  {"nginx"},
	"http_max":   {"nginx"},
	"tcp_rr":     nil,
	"tcp_crr":    nil,
	"udp_rr":     nil,
	"http_get":   {"nginx", "curl"},
	"https_get":  {"nginx", "curl"},
	"http3_get":  nil,
	"ftp_get":    {"vsftpd", "curl"},
	"scp_copy":   {"sshd", "scp", "ssh-keygen"},
}

// Workload lists what the workload of that name runs at its endpoints.
func Workload(name string) []string { return workloads[name] }

// Workloads is the whole table of workloads.
func Workloads() map[string][]string { return maps.Clone(workloads) }

// machine is what a run asks about the machine for its record. A run goes on without.
var machine = []string{"ip", "tc"}

// Fetch is what brings another kernel, a package of Debian's.
var Fetch = []string{"apt-get", "apt-cache", "dpkg-deb", "depmod"}

// guest is what boots that kernel, too.
var guest = append([]string{"qemu-system-x86_64"}, Fetch...)

// profile is what developers do here beside runs.
type profile struct {
	lab, guest bool // every contender and suite; guests
	programs   []string
}

var profiles = map[string]profile{
	"all": {lab: true, guest: true},
	"test": {lab: true, programs: []string{
		"git", "gcc", "/usr/include/stdio.h", "clang", "llc", "/usr/include/bpf/bpf_endian.h", "ethtool", "ps",
		"setpriv", "unshare", "tcpdump", "chromium", "node", "npm", "victoria-metrics",
	}},
	"test-kube": {lab: true, programs: []string{
		"git", "gcc", "/usr/include/stdio.h", "clang", "llc", "bpftool", "ethtool", "ps", "containerd", "runc", "etcd", "iptables", "nft",
		"nsenter", "unshare", "mount", "cni/bridge",
	}},
	"test-guest": {lab: true, guest: true, programs: []string{"git", "gcc", "/usr/include/stdio.h", "ps", "unshare", "containerd", "runc"}},
	"test-fresh": {programs: []string{"git", "debootstrap", "setpriv", "unshare"}},
	"bench-load": {programs: []string{"nginx", "iperf3", "ip", "unshare", "tcpdump", "wrk", "h2load", "hey"}},
}

// Profiles are the names that Profile knows, sorted.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }
