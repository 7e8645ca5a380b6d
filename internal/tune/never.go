package tune

// What a study set and nobody should any more: listed, so that a reader of the
// study finds out why, and never offered.

var tcpLowLatency = Setting{
	Name:    "tcp-low-latency",
	Summary: "net.ipv4.tcp_low_latency = 1",
	Why:     "took packets off the prequeue",
	Studies: []string{"2016"},
	Source:  "kernel Documentation/networking/ip-sysctl.rst: a legacy option, it has no effect anymore (the prequeue was removed in 4.14)",
	Scope:   ScopeNamespace,
	Never:   "without effect since Linux 4.14, which removed what it switched off",
}

var tcpTwRecycle = Setting{
	Name:    "tcp-tw-recycle",
	Summary: "net.ipv4.tcp_tw_recycle = 1",
	Why:     "freed ports of closed connections early",
	Studies: []string{"2016"},
	Source:  "kernel commit 4396e46187c (4.12: removed); kubernetes/kubernetes issue 33945",
	Scope:   ScopeNamespace,
	Never:   "it dropped connections of clients behind NAT, and Services on flannel's VXLAN lost connections through it; Linux 4.12 removed it: take tw-reuse",
}
