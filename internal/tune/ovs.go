package tune

import (
	"cmp"
	"fmt"
	"strings"
)

// Open vSwitch and OVN belong to the product that installed them: cnibench
// looks at them and says what to do. Kube-OVN's FastPath is in fastpath.go.

const kubeOVNPage = "Kube-OVN documentation, Performance Tuning"

var ovnLoadBalancer = Setting{
	Name:    "ovn-lb",
	Summary: "OVN's own load balancer off; kube-proxy serves Services",
	Why:     "about 20 % of the CPU: with load balancers every packet crosses OVN's connection tracking",
	Studies: []string{"kube-ovn"},
	Source:  kubeOVNPage + ", --enable-lb=false",
	Cost:    "Services go through kube-proxy; overlay networks only",
	Avoid:   "with underlay networks, or without kube-proxy",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		if err := f.ovn(); err != nil {
			return Proposal{}, err
		}
		return Proposal{Advice: []string{"set --enable-lb=false in the arguments of the Deployment kube-ovn-controller (kube-system) and let kube-proxy serve Services"}}, nil
	},
}

var ovnSkipConntrack = Setting{
	Name:    "ovn-skip-conntrack",
	Summary: "OVN's connection tracking left out for given destinations",
	Why:     "most of what ovn-lb buys, while Services stay with OVN",
	Studies: []string{"kube-ovn"},
	Source:  kubeOVNPage + ", --skip-conntrack-dst-cidrs (newer releases)",
	Cost:    "NetworkPolicies on connection state do not hold for these destinations",
	Avoid:   "for destinations that are reached through Services",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		if err := f.ovn(); err != nil {
			return Proposal{}, err
		}
		return Proposal{Advice: []string{"set --skip-conntrack-dst-cidrs=CIDR,… in the arguments of the Deployment kube-ovn-controller (kube-system)"}}, nil
	},
}

var ovsModule = Setting{
	Name:    "ovs-module",
	Summary: "Open vSwitch's kernel module built with popcnt and sse4.2",
	Why:     "flow look-ups from about 10 % of the CPU to 5 %",
	Studies: []string{"kube-ovn"},
	Source:  kubeOVNPage + ", compiling the OVS kernel module",
	Cost:    "a module of your own has to be rebuilt for every kernel update",
	Avoid:   "on kernels newer than the module's sources, and where modules must be signed",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		if err := f.openVSwitch(); err != nil {
			return Proposal{}, err
		}
		info, _ := f.m.Files.ReadFile("/proc/cpuinfo") // none: no flags
		flags := " " + tidy(string(info)) + " "
		if !strings.Contains(flags, " popcnt ") || !strings.Contains(flags, " sse4_2 ") {
			return Proposal{}, notApplicable("the CPUs have no popcnt and sse4.2")
		}
		if taint, err := f.m.Files.ReadFile("/sys/module/openvswitch/taint"); err == nil && strings.Contains(string(taint), "O") {
			return Proposal{Advice: []string{"the loaded openvswitch module is not the kernel's own: check that it was built with -mpopcnt -msse4.2"}}, nil
		}
		return Proposal{Advice: []string{"build the module of Open vSwitch's branch with CFLAGS -mpopcnt -msse4.2 and load it instead of the kernel's; cnibench builds and loads no module"}}, nil
	},
}

var sttTunnel = Setting{
	Name:    "stt-tunnel",
	Summary: "tunnels that look like TCP (STT)",
	Why:     "interfaces without tunnel offloads can still segment it: more throughput, where checksums of Geneve cost most",
	Studies: []string{"kube-ovn"},
	Source:  kubeOVNPage + ", TUNNEL_TYPE=stt; removed from Open vSwitch 3.6",
	Cost:    "firewalls in between may drop TCP without handshake; needs a module of your own",
	Avoid:   "on new installations: it is gone from Open vSwitch 3.6",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		if err := f.ovn(); err != nil {
			return Proposal{}, err
		}
		version, err := f.m.run(f.ctx, "", "ovs-vsctl", "--timeout=2", "get", "Open_vSwitch", ".", "ovs_version")
		if err != nil {
			return Proposal{}, notApplicable("Open vSwitch does not tell its version: %v", err)
		}
		version = strings.Trim(version, `"`)
		var major, minor int
		if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && (major > 3 || major == 3 && minor >= 6) {
			return Proposal{}, notApplicable("Open vSwitch %s has no STT any more", version)
		}
		now, _ := f.m.run(f.ctx, "", "ovs-vsctl", "--timeout=2", "--if-exists", "get", "Open_vSwitch", ".", "external_ids:ovn-encap-type") // none is Geneve
		return Proposal{Advice: []string{fmt.Sprintf("tunnels are %s (Open vSwitch %s): kubectl set env daemonset/ovs-ovn -n kube-system TUNNEL_TYPE=stt, with a module that has it", cmp.Or(strings.Trim(now, `"`), "geneve"), version)}}, nil
	},
}

// openVSwitch is the reason why Open vSwitch cannot be looked at, or nil.
func (f *Facts) openVSwitch() error {
	_, err := f.m.run(f.ctx, "", "ovs-vsctl", "--timeout=2", "show")
	switch {
	case missing(err):
		return notApplicable("Open vSwitch is not installed")
	case err != nil:
		return notApplicable("Open vSwitch does not run here")
	}
	return nil
}

// ovn is the reason why the machine is no chassis of OVN, or nil.
func (f *Facts) ovn() error {
	if err := f.openVSwitch(); err != nil {
		return err
	}
	remote, err := f.m.run(f.ctx, "", "ovs-vsctl", "--timeout=2", "--if-exists", "get", "Open_vSwitch", ".", "external_ids:ovn-remote")
	if err != nil || remote == "" {
		return notApplicable("Open vSwitch runs here without OVN")
	}
	return nil
}
