package tune

// fastPath is Kube-OVN's netfilter bypass: found and explained, never built.
var fastPath = Setting{
	Name:    "fastpath",
	Summary: "Kube-OVN's FastPath module: pods' packets skip netfilter on the node",
	Why:     "about 20 % of the CPU, and latency below the host network's own, whose packets still cross kube-proxy's rules",
	Studies: []string{"kube-ovn"},
	Source:  "github.com/kubeovn/kube-ovn fastpath/ (sources for Linux 3.x and 4.x to 6.x); since 2026-03 it passes by namespaces with ip_forward=1",
	Cost:    "iptables, ipvs and nftables rules of the node do not see pods' packets; a module to rebuild for every kernel",
	Avoid:   "with anything on the nodes that relies on netfilter for pods: kube-proxy, host firewalls, service meshes that redirect",
	Scope:   ScopeMachine,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		if _, err := f.m.Files.ReadDir("/sys/module/kube_ovn_fastpath"); err == nil {
			return Proposal{Advice: []string{"kube_ovn_fastpath is loaded: no rule of iptables, ipvs or nftables on this node sees pods' packets; take it out with rmmod kube_ovn_fastpath"}}, nil
		}
		if err := f.ovn(); err != nil {
			return Proposal{}, err
		}
		release, err := f.read(sysctl("kernel.osrelease"))
		if err != nil {
			return Proposal{}, err
		}
		return Proposal{Advice: []string{"not loaded. To have it, build fastpath/ of kube-ovn for kernel " + release + " and insmod kube_ovn_fastpath.ko; cnibench builds and loads no module"}}, nil
	},
}
