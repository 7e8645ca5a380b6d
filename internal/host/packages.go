package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages says for every program that cnibench and its tests run which
// package brings it: of Debian, Fedora, Arch and Alpine; "" where the
// distribution has none. Every other list is made from this one. A name that
// starts with "cni/" is a CNI plugin; an absolute one is a file that is no
// program. Debian's names are proven by `make test-fresh`.
var packages = map[string][4]string{
	// Loads.
	"iperf3":     {"iperf3", "iperf3", "iperf3", "iperf3"},
	"qperf":      {"qperf", "qperf", "", ""},
	"nginx":      {"nginx-light", "nginx-core", "nginx", "nginx"},
	"curl":       {"curl", "curl", "curl", "curl"},
	"vsftpd":     {"vsftpd", "vsftpd", "vsftpd", "vsftpd"},
	"sshd":       {"openssh-server", "openssh-server", "openssh", "openssh-server"},
	"scp":        {"openssh-client", "openssh-clients", "openssh", "openssh-client-default"},
	"ssh-keygen": {"openssh-client", "openssh", "openssh", "openssh-keygen"},
	"sh":         {"dash", "bash", "bash", "busybox"},
	"cat":        {"coreutils", "coreutils", "coreutils", "busybox"},

	// Pod networks.
	"cni/bridge":              {"containernetworking-plugins", "containernetworking-plugins", "cni-plugins", "cni-plugins"},
	"cni/host-local":          {"containernetworking-plugins", "containernetworking-plugins", "cni-plugins", "cni-plugins"},
	"cni/ipvlan":              {"containernetworking-plugins", "containernetworking-plugins", "cni-plugins", "cni-plugins"},
	"cni/macvlan":             {"containernetworking-plugins", "containernetworking-plugins", "cni-plugins", "cni-plugins"},
	"cni/ptp":                 {"containernetworking-plugins", "containernetworking-plugins", "cni-plugins", "cni-plugins"},
	"iptables":                {"iptables", "iptables-nft", "iptables", "iptables"},
	"iptables-restore":        {"iptables", "iptables-nft", "iptables", "iptables"},
	"iptables-nft-restore":    {"iptables", "iptables-nft", "iptables", "iptables"},
	"iptables-legacy-restore": {"iptables", "iptables-legacy", "iptables", "iptables-legacy"},
	"nft":                     {"nftables", "nftables", "nftables", "nftables"},
	"ipset":                   {"ipset", "ipset", "ipset", "ipset"},
	"ipvsadm":                 {"ipvsadm", "ipvsadm", "ipvsadm", "ipvsadm"},
	"ovs-vswitchd":            {"openvswitch-switch", "openvswitch", "openvswitch", "openvswitch"},
	"ovsdb-server":            {"openvswitch-switch", "openvswitch", "openvswitch", "openvswitch"},
	"ovs-vsctl":               {"openvswitch-switch", "openvswitch", "openvswitch", "openvswitch"},
	"ovs-ofctl":               {"openvswitch-switch", "openvswitch", "openvswitch", "openvswitch"},
	"ovs-dpctl":               {"openvswitch-switch", "openvswitch", "openvswitch", "openvswitch"},
	"ovsdb-tool":              {"openvswitch-common", "openvswitch", "openvswitch", "openvswitch"},
	"ovs-appctl":              {"openvswitch-common", "openvswitch", "openvswitch", "openvswitch"},
	"ovn-northd":              {"ovn-central", "ovn-central", "", "ovn"},
	"ovn-nbctl":               {"ovn-common", "ovn", "", "ovn"},
	"ovn-sbctl":               {"ovn-common", "ovn", "", "ovn"},
	"ovn-controller":          {"ovn-host", "ovn-host", "", "ovn"},
	"etcd":                    {"etcd-server", "etcd", "etcd", "etcd"},

	// Guests, and what is recorded of a machine.
	"qemu-system-x86_64": {"qemu-system-x86", "qemu-system-x86-core", "qemu-system-x86", "qemu-system-x86_64"},
	"apt-get":            {"apt", "apt", "", ""},
	"apt-cache":          {"apt", "apt", "", ""},
	"dpkg-deb":           {"dpkg", "dpkg", "dpkg", "dpkg"},
	"depmod":             {"kmod", "kmod", "kmod", "kmod"},
	"ip":                 {"iproute2", "iproute", "iproute2", "iproute2"},
	"tc":                 {"iproute2", "iproute-tc", "iproute2", "iproute2-tc"},

	// Host settings.
	"tuned-adm": {"tuned", "tuned", "", ""},

	// Developers.
	"gcc":                           {"gcc", "gcc", "gcc", "gcc"},
	"/usr/include/stdio.h":          {"libc6-dev", "glibc-devel", "glibc", "musl-dev"},
	"/usr/include/bpf/bpf_endian.h": {"libbpf-dev", "libbpf-devel", "libbpf", "libbpf-dev"},
	"clang":                         {"clang", "clang", "clang", "clang"},
	"llc":                           {"llvm", "llvm", "llvm", "llvm"},
	"bpftool":                       {"bpftool", "bpftool", "bpf", "bpftool"},
	"git":                           {"git", "git", "git", "git"},
	"make":                          {"make", "make", "make", "make"},
	"ethtool":                       {"ethtool", "ethtool", "ethtool", "ethtool"},
	"ps":                            {"procps", "procps-ng", "procps-ng", "procps-ng"},
	"setpriv":                       {"util-linux", "util-linux", "util-linux", "setpriv"},
	"unshare":                       {"util-linux", "util-linux", "util-linux", "util-linux-misc"},
	"nsenter":                       {"util-linux", "util-linux", "util-linux", "util-linux-misc"},
	"mount":                         {"mount", "util-linux", "util-linux", "mount"},
	"tcpdump":                       {"tcpdump", "tcpdump", "tcpdump", "tcpdump"},
	"chromium":                      {"chromium", "chromium", "chromium", "chromium"},
	"node":                          {"nodejs", "nodejs", "nodejs", "nodejs"},
	"npm":                           {"npm", "nodejs-npm", "npm", "npm"},
	"victoria-metrics":              {"victoria-metrics", "", "victoriametrics", "victoria-metrics"},
	"containerd":                    {"containerd", "containerd", "containerd", "containerd"},
	"runc":                          {"runc", "runc", "runc", "runc"},
	"debootstrap":                   {"debootstrap", "debootstrap", "debootstrap", "debootstrap"},
	"wrk":                           {"wrk", "", "wrk", "wrk"},
	"h2load":                        {"nghttp2-client", "nghttp2", "nghttp2", "nghttp2"},
	"hey":                           {"hey", "", "", ""},
}

// builds are the commands that build, in a checkout, programs that no package has.
var builds = map[string]string{"flanneld": "make flanneld"}

// Known says whether the table of packages, or that of builds, has the program.
func Known(program string) bool {
	return packages[program][0] != "" || builds[program] != ""
}

// Distribution is a family of Linux distributions that share names of packages.
type Distribution struct {
	Name    string
	install string // the command line before the packages
	lean    string // its flag for nothing beside what is needed
	ids     []string
	column  int // of packages
}

var distributions = []Distribution{
	{"Debian", "apt-get install", " --no-install-recommends", []string{"debian", "ubuntu"}, 0},
	{"Fedora", "dnf install", " --setopt=install_weak_deps=False", []string{"fedora", "rhel", "centos"}, 1},
	{"Arch", "pacman -S", " --needed", []string{"arch"}, 2},
	{"Alpine", "apk add", "", []string{"alpine"}, 3},
}

// Distributions are the families that the table of packages has.
func Distributions() []Distribution { return slices.Clone(distributions) }

// Here returns this machine's distribution by /etc/os-release. It is Debian if the file
// names no distribution of the table.
func Here() Distribution {
	raw, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return distributions[0]
	}
	return distributionOf(string(raw))
}

// distributionOf reads os-release(5): ID, else the words of ID_LIKE.
func distributionOf(release string) Distribution {
	field := map[string]string{}
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		field[key] = strings.Trim(value, `"'`)
	}
	for _, id := range append([]string{field["ID"]}, strings.Fields(field["ID_LIKE"])...) {
		for _, d := range distributions {
			if slices.Contains(d.ids, id) {
				return d
			}
		}
	}
	return distributions[0]
}

// Package is the distribution's package that has the program, "" where none is known.
func (d Distribution) Package(program string) string { return packages[program][d.column] }

// Install is the command line that installs the packages.
func (d Distribution) Install(packages ...string) string {
	return d.install + d.lean + " " + strings.Join(packages, " ")
}

// Remedy says how to install or build the program; "" if neither package nor build is
// known.
func (d Distribution) Remedy(program string) string {
	switch pkg := d.Package(program); {
	case builds[program] != "":
		return "build it with: " + builds[program]
	case pkg != "":
		return "install it with: " + d.install + " " + pkg
	}
	return ""
}

// DefaultCNIPath is where CNI plugins are looked for: the specification's
// folder, then those of the distributions' packages.
var DefaultCNIPath = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}

// CNIPath is CNI_PATH, as for other runtimes, or the usual folders.
func CNIPath() []string {
	if p := os.Getenv("CNI_PATH"); p != "" {
		return filepath.SplitList(p)
	}
	return DefaultCNIPath
}

const cniPrefix = "cni/"

// CNI is the CNI plugin's name as a program.
func CNI(plugin string) string { return cniPrefix + plugin }

// Missing returns nil if the program, CNI plugin or file is on this machine.
func Missing(program string) *ProgramError {
	plugin, isPlugin := strings.CutPrefix(program, cniPrefix)
	var err error
	switch {
	case isPlugin:
		err = fs.ErrNotExist
		for _, dir := range CNIPath() {
			if _, err = exec.LookPath(filepath.Join(dir, plugin)); err == nil {
				break
			}
		}
	case filepath.IsAbs(program):
		_, err = os.Stat(program)
	default:
		_, err = find(program)
	}
	if err == nil {
		return nil
	}
	return missing(program)
}

// Have returns nil if all those programs, CNI plugins and files are on this
// machine, else an error that joins a *ProgramError for each missing one.
func Have(programs ...string) error {
	var errs []error
	for _, p := range programs {
		if err := Missing(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func missing(program string) *ProgramError {
	return &ProgramError{Program: program, Remedy: Here().Remedy(program)}
}
