package diagnose_test

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// find returns a path of the case.
func find(c *diagnose.Case, kind string, back bool) *diagnose.Path {
	i := slices.IndexFunc(c.Paths, func(p diagnose.Path) bool { return p.Kind == kind && p.Back == back })
	return &c.Paths[i]
}

// set sets a figure on paths of those kinds in a direction.
func set(c *diagnose.Case, back bool, probe, figure string, value float64, kinds ...string) {
	for _, kind := range kinds {
		find(c, kind, back).Probes[probe].Figures[figure] = value
	}
}

// scale multiplies the goodput on those paths.
func scale(c *diagnose.Case, back bool, by float64, kinds ...string) {
	for _, kind := range kinds {
		p := find(c, kind, back)
		bulk := p.Probes[diagnose.Bulk]
		bulk.Figures[diagnose.Goodput] *= by
		for endpoint, counters := range bulk.Counters {
			for key := range counters {
				if len(key) > 13 && key[:13] == "node_network_" {
					bulk.Counters[endpoint][key] *= by
				}
			}
		}
	}
}

// add adds to a counter of an endpoint in a probe of a path.
func add(c *diagnose.Case, kind string, back bool, probe, endpoint, counter string, by float64) {
	p := find(c, kind, back).Probes[probe]
	counters := maps.Clone(p.Counters[endpoint])
	counters[counter] += by
	p.Counters[endpoint] = counters
}

// small has those devices carry packets of that size on the path.
func small(c *diagnose.Case, kind string, back bool, endpoint string, size float64, devices ...string) {
	counters := find(c, kind, back).Probes[diagnose.Bulk].Counters[endpoint]
	for _, d := range devices {
		for _, way := range []string{"receive", "transmit"} {
			label := `{device="` + d + `"}`
			if bytes := counters["node_network_"+way+"_bytes"+label]; bytes > 0 {
				counters["node_network_"+way+"_packets"+label] = bytes / size
			}
		}
	}
}

func snapshot(c *diagnose.Case, endpoint string) *diagnose.Snapshot {
	i := slices.IndexFunc(c.Snapshots, func(s diagnose.Snapshot) bool { return s.Endpoint == endpoint })
	return &c.Snapshots[i]
}

func device(c *diagnose.Case, endpoint, name string) *diagnose.Device {
	s := snapshot(c, endpoint)
	i := slices.IndexFunc(s.Devices, func(d diagnose.Device) bool { return d.Name == name })
	return &s.Devices[i]
}

// yours adds the user's pod shop/cart on node-1, and what the kubelet counted of it in 30 s.
func yours(c *diagnose.Case, s diagnose.Snapshot, grown map[string]float64) {
	s.Endpoint, s.Node, s.Pod, s.Yours, s.Containers = "shop/cart", "node-1", true, true, []string{"app"}
	c.Snapshots = append(c.Snapshots, s)
	if grown != nil {
		c.Paths = append(c.Paths, diagnose.Path{Kind: diagnose.Yours, From: s.Endpoint, Probes: map[string]diagnose.Probe{
			diagnose.Idle: {Seconds: 30, Counters: map[string]map[string]float64{s.Endpoint: grown}}}})
	}
}

var usual = expected{ID: "usual"}

const (
	there = "node-1 → node-2"
	back  = "node-2 → node-1"
)

// constructed lists the cases that are made by hand: what is changed of a sound network.
func constructed() []kind {
	both := []bool{false, true}
	offload := func(c *diagnose.Case) {
		f := device(c, "node-1", "flannel.1").Features
		f["tx-checksum-ip-generic"], f["tx-tcp-segmentation"], f["tx-generic-segmentation"] = false, false, false
		scale(c, false, 0.12, diagnose.PodPod, diagnose.NodePod)
		small(c, diagnose.PodPod, false, "node-1", 1464, "flannel.1", "eth0")
		small(c, diagnose.PodPod, false, "node-2", 1464, "eth0", "flannel.1", "cni0", "veth1")
	}
	return []kind{
		{"offload-off", "", false, "ethtool -K flannel.1 tx off tso off gso off, node-1",
			expected{"offload-off", "supported", "node-1", "flannel.1", there, ""}, offload},
		{"offload-off", "proven", false, "the same, with the trial of --prove",
			expected{"offload-off", "proven", "node-1", "flannel.1", there, ""}, func(c *diagnose.Case) {
				offload(c)
				for _, s := range diagnose.Settings(c) {
					c.Trials = append(c.Trials, diagnose.Trial{Key: s.Key, Node: s.Endpoint, What: s.What, Figures: []diagnose.TrialFigure{{
						Metric: diagnose.Goodput, Without: []float64{6e8, 6.1e8, 5.9e8, 6e8, 6.2e8, 6e8}, With: []float64{4.8e9, 5e9, 4.9e9, 5.1e9, 5e9, 4.7e9}}}})
				}
			}},
		{"offload-off", "one-fast-slice", false, "the same on a busy machine, where one slice of three was 15 times as fast as the others",
			expected{"offload-off", "supported", "node-1", "flannel.1", there, ""}, func(c *diagnose.Case) {
				offload(c)
				for i := range c.Paths {
					p := &c.Paths[i]
					if p.Kind != diagnose.PodPod || p.Back {
						continue
					}
					bulk := p.Probes[diagnose.Bulk]
					mean := bulk.Figures[diagnose.Goodput]
					bulk.Slices = map[string][]float64{diagnose.Goodput: {2.65 * mean, 0.175 * mean, 0.175 * mean}}
					bulk.Figures[diagnose.Goodput] = 2.65 * mean
					p.Probes[diagnose.Bulk] = bulk
				}
			}},
		{"offload-off", "off-and-harmless", true, "an offload is off, segments pass whole all the same", usual, func(c *diagnose.Case) {
			device(c, "node-1", "flannel.1").Features["tx-tcp-segmentation"] = false
		}},
		{"offload-off", "", true, "a healthy VXLAN at half of the nodes' goodput", usual, func(*diagnose.Case) {}},
		{"mtu-exceeds", "", false, "the link of node-2 takes 1400 bytes and no ICMP comes back",
			expected{"mtu-exceeds", "supported", "", "", there, ""}, func(c *diagnose.Case) {
				set(c, false, diagnose.Size, diagnose.Whole, 1350, diagnose.PodPod)
				set(c, false, diagnose.Size, diagnose.Whole, 1400, diagnose.Host)
			}},
		{"mtu-exceeds", "", true, "the pods' MTU crosses whole both ways", usual, func(*diagnose.Case) {}},
		{"mtu-wastes", "", false, "pods have an MTU of 1200 on links of 1500",
			expected{"mtu-wastes", "supported", "node-1", "", there, ""}, func(c *diagnose.Case) {
				for _, b := range both {
					set(c, b, diagnose.Size, diagnose.MTU, 1200, diagnose.PodPod)
					set(c, b, diagnose.Size, diagnose.Whole, 1200, diagnose.PodPod)
				}
			}},
		{"mtu-wastes", "", true, "pods have 1430 of the 1450 that fit", usual, func(c *diagnose.Case) {
			for _, b := range both {
				set(c, b, diagnose.Size, diagnose.MTU, 1430, diagnose.PodPod)
				set(c, b, diagnose.Size, diagnose.Whole, 1430, diagnose.PodPod)
			}
		}},
		{"mtu-differs", "", false, "eth0 of node-2 has an MTU of 1400, and large packets towards it do not arrive",
			expected{"mtu-differs", "supported", "node-2", "eth0", "", ""}, func(c *diagnose.Case) {
				device(c, "node-2", "eth0").MTU = 1400
				set(c, false, diagnose.Size, diagnose.Whole, 1400, diagnose.Host)
			}},
		{"mtu-differs", "", true, "the same MTU everywhere", usual, func(*diagnose.Case) {}},
		{"segments-lost", "", false, "nft: forwarded frames above 1514 bytes dropped, 15 %, node-1",
			expected{"segments-lost", "supported", "node-1", "veth1", there, ""}, func(c *diagnose.Case) {
				scale(c, false, 0.003, diagnose.PodPod, diagnose.PodNode)
				set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.15, diagnose.PodPod, diagnose.PodNode)
			}},
		{"segments-lost", "", true, "TCP sends a few segments again, as on any busy link", usual, func(c *diagnose.Case) {
			set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.003, diagnose.PodPod)
		}},
		{"fragments-lost", "", false, "the pods' packets are cut up and node-2 drops second fragments",
			expected{"fragments-lost", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				set(c, false, diagnose.Size, diagnose.Whole, 1400, diagnose.PodPod)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-1", "node_netstat_Ip_FragCreates", 172)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Ip_ReasmReqds", 86)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Ip_ReasmFails", 80)
			}},
		{"fragments-lost", "", true, "packets are cut up and all of their pieces arrive",
			expected{"mtu-exceeds", "supported", "", "", there, ""}, func(c *diagnose.Case) {
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-1", "node_netstat_Ip_FragCreates", 172)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Ip_ReasmReqds", 172)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Ip_ReasmOKs", 86)
			}},
		{"loss", "", false, "nft: 3 % of what node-2 forwards to its pods is dropped",
			expected{"loss", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				set(c, false, diagnose.Small, diagnose.Loss, 0.03, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Large, diagnose.Loss, 0.03, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.03, diagnose.PodPod, diagnose.NodePod)
			}},
		{"loss", "stalled", false, "the same, and bulk gets nowhere: not segments alone",
			expected{"loss", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				set(c, false, diagnose.Small, diagnose.Loss, 0.028, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Large, diagnose.Loss, 0.032, diagnose.PodPod, diagnose.NodePod)
				scale(c, false, 0, diagnose.PodPod, diagnose.NodePod)
			}},
		{"loss", "sent-again", false, "the same, and a slice in which bulk stood still sent little but what it sent again",
			expected{"loss", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				set(c, false, diagnose.Small, diagnose.Loss, 0.03, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Large, diagnose.Loss, 0.031, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.16, diagnose.PodPod, diagnose.NodePod)
			}},
		{"loss", "underlay", false, "nft ingress of node-2: 3 % of all packets from node-1 are dropped",
			expected{"loss", "supported", "", "", there, ""}, func(c *diagnose.Case) {
				for _, k := range []string{diagnose.PodPod, diagnose.NodePod, diagnose.PodNode, diagnose.Host} {
					set(c, false, diagnose.Small, diagnose.Loss, 0.03, k)
					set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.03, k)
				}
			}},
		{"loss", "new", false, "nft on node-1: ct state new over 100 per second dropped",
			expected{"loss", "supported", "node-1", "", there, ""}, func(c *diagnose.Case) {
				for _, k := range []string{diagnose.PodPod, diagnose.PodNode} {
					set(c, false, diagnose.Connect, diagnose.Failed, 0.6, k)
					set(c, false, diagnose.Connect, diagnose.Rate, 80, k)
					p := find(c, k, false)
					add(c, k, false, diagnose.Connect, p.From, "node_netstat_TcpExt_TCPSynRetrans", 12)
				}
			}},
		{"loss", "", true, "one datagram of a thousand is lost", usual, func(c *diagnose.Case) {
			set(c, false, diagnose.Small, diagnose.Loss, 0.001, diagnose.PodPod)
		}},
		{"delay", "", false, "netem delay 20ms on flannel.1 of node-1",
			expected{"delay", "supported", "node-1", "flannel.1", there, ""}, func(c *diagnose.Case) {
				s := snapshot(c, "node-1")
				s.Qdiscs = append(s.Qdiscs, diagnose.Qdisc{Device: "flannel.1", Kind: "netem", Delay: 0.02})
				for _, b := range both {
					set(c, b, diagnose.RTT, diagnose.P50, 0.0201, diagnose.PodPod)
				}
			}},
		{"delay", "", true, "the nodes are 20 ms apart, and so are their pods", usual, func(c *diagnose.Case) {
			for _, b := range both {
				set(c, b, diagnose.RTT, diagnose.P50, 0.0200, diagnose.Host, diagnose.NodePod, diagnose.PodNode)
				set(c, b, diagnose.RTT, diagnose.P50, 0.0201, diagnose.PodPod)
			}
		}},
		{"rate-limited", "", false, "tc qdisc add dev eth0 root tbf rate 500mbit, node-2",
			expected{"rate-limited", "supported", "node-2", "eth0", back, ""}, func(c *diagnose.Case) {
				s := snapshot(c, "node-2")
				s.Qdiscs = []diagnose.Qdisc{{Device: "eth0", Kind: "tbf", Rate: 500e6}}
				s.After = []diagnose.Qdisc{{Device: "eth0", Kind: "tbf", Rate: 500e6, Overlimits: 9528}}
				scale(c, true, 0.048, diagnose.Host, diagnose.PodNode, diagnose.NodePod)
				scale(c, true, 0.094, diagnose.PodPod)
			}},
		{"rate-limited", "above-cap", false, "the same at 500 Mbit/s, while bulk is held to 200 Mbit/s",
			expected{"rate-limited", "suspected", "node-2", "eth0", back, ""}, func(c *diagnose.Case) {
				c.MaxRate = 200e6
				snapshot(c, "node-2").Qdiscs = []diagnose.Qdisc{{Device: "eth0", Kind: "tbf", Rate: 500e6}}
				for _, b := range both {
					for _, k := range []string{diagnose.Host, diagnose.PodNode, diagnose.NodePod, diagnose.PodPod} {
						scale(c, b, 200e6/find(c, k, b).Probes[diagnose.Bulk].Figures[diagnose.Goodput], k)
					}
				}
			}},
		{"rate-limited", "", true, "fq paces flows and limits none", usual, func(c *diagnose.Case) {
			s := snapshot(c, "node-1")
			s.Qdiscs = []diagnose.Qdisc{{Device: "eth0", Kind: "fq", Rate: 0}}
		}},
		{"cpu-throttled", "", false, "limits.cpu: 200m on pod-1",
			expected{"cpu-throttled", "supported", "node-1", "", "", "pod-1"}, func(c *diagnose.Case) {
				snapshot(c, "pod-1").CPULimit = 0.2
				scale(c, false, 0.3, diagnose.PodPod, diagnose.PodNode)
				for counter, n := range map[string]float64{"periods": 60, "throttled_periods": 41, "throttled_seconds": 3.1} {
					add(c, diagnose.PodPod, false, diagnose.Bulk, "pod-1", "container_cpu_cfs_"+counter, n)
				}
			}},
		{"cpu-starved", "one-slice", true, "a busy machine, and one slice between the nodes is four times faster than the others", usual, func(c *diagnose.Case) {
			find(c, diagnose.Quiet, false).Probes[diagnose.Idle].Counters["node-1"] = cpuTime(0.5, 2, 0.99, 0)
			set(c, false, diagnose.RTT, diagnose.P50, 10e-6, diagnose.Host)
			p := find(c, diagnose.Host, false).Probes[diagnose.RTT]
			p.Slices = map[string][]float64{diagnose.P50: {40e-6, 10e-6, 42e-6}}
			find(c, diagnose.Host, false).Probes[diagnose.RTT] = p
		}},
		{"cpu-starved", "loss", true, "a busy machine, loss on the pods' path alone, and one slice of three between the nodes sends again",
			expected{"loss", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				find(c, diagnose.Quiet, false).Probes[diagnose.Idle].Counters["node-1"] = cpuTime(0.5, 2, 0.99, 0)
				set(c, false, diagnose.Small, diagnose.Loss, 0.03, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Large, diagnose.Loss, 0.03, diagnose.PodPod, diagnose.NodePod)
				scale(c, false, 0, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Bulk, diagnose.Retransmits, 0.0071, diagnose.Host)
				p := find(c, diagnose.Host, false).Probes[diagnose.Bulk]
				p.Slices = map[string][]float64{diagnose.Retransmits: {5e-6, 0, 0.0214}}
				find(c, diagnose.Host, false).Probes[diagnose.Bulk] = p
			}},
		{"cpu-throttled", "yours", false, "diagnose --pod shop/cart, whose limits.cpu of 200m is used up",
			expected{"cpu-throttled", "supported", "node-1", "", "", "shop/cart"}, func(c *diagnose.Case) {
				yours(c, diagnose.Snapshot{CPULimit: 0.2}, map[string]float64{"container_cpu_cfs_periods": 300, "container_cpu_cfs_throttled_periods": 211, "container_cpu_cfs_throttled_seconds": 14})
			}},
		{"cpu-throttled", "yours", true, "the same pod, and the kubelet may not be asked", usual, func(c *diagnose.Case) {
			yours(c, diagnose.Snapshot{CPULimit: 0.2}, nil)
		}},
		{"rate-limited", "annotation", false, "kubernetes.io/egress-bandwidth: 10M on shop/cart, which sends as much",
			expected{"rate-limited", "supported", "node-1", "", "", "shop/cart"}, func(c *diagnose.Case) {
				yours(c, diagnose.Snapshot{Egress: 10e6}, map[string]float64{"container_network_transmit_bytes": 36e6})
			}},
		{"rate-limited", "annotation-unused", false, "the same annotation on a pod that sends little",
			expected{"rate-limited", "suspected", "node-1", "", "", "shop/cart"}, func(c *diagnose.Case) {
				yours(c, diagnose.Snapshot{Egress: 10e6}, map[string]float64{"container_network_transmit_bytes": 36e3})
			}},
		{"policy", "yours", true, "policies select shop/cart: that is said, and is no cause", usual, func(c *diagnose.Case) {
			yours(c, diagnose.Snapshot{Policies: []string{"default-deny"}}, nil)
		}},
		{"cpu-throttled", "", true, "a limit that is not used up", usual, func(c *diagnose.Case) {
			snapshot(c, "pod-1").CPULimit = 2
			add(c, diagnose.PodPod, false, diagnose.Bulk, "pod-1", "container_cpu_cfs_periods", 60)
		}},
		{"cpu-starved", "", false, "a hog on every CPU of node-1",
			expected{"cpu-starved", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				find(c, diagnose.Quiet, false).Probes[diagnose.Idle].Counters["node-1"] = cpuTime(0.5, 2, 0.99, 0)
				for _, b := range both {
					set(c, b, diagnose.RTT, diagnose.P50, 3e-3, diagnose.Host, diagnose.NodePod, diagnose.PodNode, diagnose.PodPod)
				}
			}},
		{"cpu-starved", "busy", true, "a busy node whose pods are no slower", usual, func(c *diagnose.Case) {
			find(c, diagnose.Quiet, false).Probes[diagnose.Idle].Counters["node-1"] = cpuTime(0.5, 2, 0.99, 0)
		}},
		{"cpu-starved", "", true, "the nodes are busy while bulk runs, and idle before", usual, func(c *diagnose.Case) {
			for endpoint, counters := range find(c, diagnose.PodPod, false).Probes[diagnose.Bulk].Counters {
				maps.Copy(counters, cpuTime(0.6, 2, 0.98, 0.4))
				find(c, diagnose.PodPod, false).Probes[diagnose.Bulk].Counters[endpoint] = counters
			}
		}},
		{"one-cpu", "", false, "rps_cpus=1 on eth0 of node-2",
			expected{"one-cpu", "supported", "node-2", "eth0", there, ""}, func(c *diagnose.Case) {
				device(c, "node-2", "eth0").RPS = []string{"1"}
				scale(c, false, 0.1, diagnose.PodPod)
				counters := find(c, diagnose.PodPod, false).Probes[diagnose.Bulk].Counters["node-2"]
				maps.Copy(counters, map[string]float64{
					`node_cpu_seconds{cpu="0",mode="softirq"}`: 0.58, `node_cpu_seconds{cpu="0",mode="user"}`: 0.01, `node_cpu_seconds{cpu="0",mode="idle"}`: 0.01,
					`node_cpu_seconds{cpu="1",mode="softirq"}`: 0, `node_cpu_seconds{cpu="1",mode="user"}`: 0.1, `node_cpu_seconds{cpu="1",mode="idle"}`: 0.5})
			}},
		{"one-cpu", "", true, "soft interrupts on both CPUs", usual, func(*diagnose.Case) {}},
		{"steal", "", false, "the hypervisor takes a fifth of node-1",
			expected{"steal", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				for _, p := range c.Paths {
					for _, probe := range p.Probes {
						if counters := probe.Counters["node-1"]; counters[`node_cpu_seconds{cpu="0",mode="idle"}`] > 0 {
							counters[`node_cpu_seconds{cpu="0",mode="steal"}`] = 0.4 * 0.6
						}
					}
				}
			}},
		{"steal", "", true, "a hundredth is stolen", usual, func(c *diagnose.Case) {
			for _, p := range c.Paths {
				for _, probe := range p.Probes {
					if counters := probe.Counters["node-1"]; counters[`node_cpu_seconds{cpu="0",mode="idle"}`] > 0 {
						counters[`node_cpu_seconds{cpu="0",mode="steal"}`] = 0.006
					}
				}
			}
		}},
		{"softnet-drops", "", false, "net.core.netdev_max_backlog=1",
			expected{"softnet-drops", "supported", "node-2", "", "", ""}, func(c *diagnose.Case) {
				snapshot(c, "node-2").Sysctls["net.core.netdev_max_backlog"] = "1"
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_softnet_dropped", 900)
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_softnet_processed", 120000)
			}},
		{"softnet-drops", "", true, "three drops of a million", usual, func(c *diagnose.Case) {
			add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_softnet_dropped", 3)
			add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_softnet_processed", 1e6)
		}},
		{"nic-errors", "", false, "eth0 of node-1 counts errors",
			expected{"nic-errors", "supported", "node-1", "eth0", "", ""}, func(c *diagnose.Case) {
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-1", `node_network_transmit_errs{device="eth0"}`, 40)
			}},
		{"nic-errors", "", true, "two errors", usual, func(c *diagnose.Case) {
			add(c, diagnose.PodPod, false, diagnose.Bulk, "node-1", `node_network_transmit_errs{device="eth0"}`, 2)
		}},
		{"qdisc-drops", "", false, "pfifo limit 2 on eth0 of node-1",
			expected{"qdisc-drops", "supported", "node-1", "eth0", "", ""}, func(c *diagnose.Case) {
				snapshot(c, "node-1").After[0].Drops = 800
			}},
		{"qdisc-drops", "", true, "five drops", usual, func(c *diagnose.Case) { snapshot(c, "node-1").After[0].Drops = 5 }},
		{"conntrack-full", "", false, "sysctl nf_conntrack_max=9500 with 9499 entries on node-1",
			expected{"conntrack-full", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				s := snapshot(c, "node-1")
				s.ConntrackCount, s.ConntrackMax = 9499, 9500
				set(c, false, diagnose.Connect, diagnose.Rate, 5, diagnose.PodPod)
				add(c, diagnose.PodPod, false, diagnose.Connect, "node-1", "node_nf_conntrack_stat_drop", 147)
				add(c, diagnose.PodPod, false, diagnose.Connect, "pod-1", "node_netstat_TcpExt_TCPSynRetrans", 147)
			}},
		{"conntrack-full", "", true, "a table that is half full", usual, func(c *diagnose.Case) { snapshot(c, "node-1").ConntrackCount = 130000 }},
		{"conntrack-races", "", false, "A and AAAA from one port through DNAT",
			expected{"conntrack-races", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				find(c, diagnose.DNS, false).Probes[diagnose.Lookup].Figures[diagnose.Late] = 0.006
				add(c, diagnose.PodPod, false, diagnose.RTT, "node-1", "node_nf_conntrack_stat_insert_failed", 6)
			}},
		{"conntrack-races", "", true, "look-ups are late and insert_failed stays 0 (a reporter of k8s#56903)",
			expected{"dns-slow", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				find(c, diagnose.DNS, false).Probes[diagnose.Lookup].Figures[diagnose.Late] = 0.02
			}},
		{"rules-long", "", false, "2,000 rules in mangle FORWARD of node-1",
			expected{"rules-long", "supported", "node-1", "", there, ""}, func(c *diagnose.Case) {
				snapshot(c, "node-1").Rules["ip mangle FORWARD"] = 2000
				set(c, false, diagnose.RTT, diagnose.P50, 260e-6, diagnose.PodPod)
			}},
		{"rules-long", "", true, "200 rules", usual, func(c *diagnose.Case) { snapshot(c, "node-1").Rules["ip mangle FORWARD"] = 200 }},
		{"services-many", "", false, "10,000 Services with kube-proxy in iptables mode",
			expected{"services-many", "supported", "node-1", "", there, ""}, func(c *diagnose.Case) {
				c.Services = 10000
				set(c, false, diagnose.Connect, diagnose.P50, 900e-6, diagnose.Service)
			}},
		{"services-many", "", true, "10,000 Services in nftables mode: no slower", usual, func(c *diagnose.Case) { c.Services = 10000 }},
		{"window-limited", "", false, "net.ipv4.tcp_rmem at most 65536 in pod-2",
			expected{"window-limited", "supported", "node-2", "", there, "pod-2"}, func(c *diagnose.Case) {
				snapshot(c, "pod-2").Sysctls["net.ipv4.tcp_rmem"] = "4096 32768 65536"
				scale(c, false, 0.2, diagnose.PodPod, diagnose.NodePod)
				set(c, false, diagnose.Bulk, diagnose.RwndLimited, 0.9, diagnose.PodPod, diagnose.NodePod)
			}},
		{"window-limited", "", true, "TCP waits for windows between nodes as long as between pods", usual, func(c *diagnose.Case) {
			set(c, false, diagnose.Bulk, diagnose.RwndLimited, 0.5, diagnose.PodPod, diagnose.Host)
		}},
		{"wrong-path", "", false, "the route to the pods of node-2 goes by eth1 of node-1",
			expected{"wrong-path", "supported", "node-1", "eth1", there, ""}, func(c *diagnose.Case) {
				s := snapshot(c, "node-1")
				s.Devices = append(s.Devices, diagnose.Device{Name: "eth1", Kind: "veth", MTU: 1500, Addrs: []string{"10.1.0.1/24"}})
				scale(c, false, 0.02, diagnose.PodPod)
				counters := find(c, diagnose.PodPod, false).Probes[diagnose.Bulk].Counters["node-1"]
				for _, what := range []string{"bytes", "packets"} {
					counters["node_network_transmit_"+what+`{device="eth1"}`] = counters["node_network_transmit_"+what+`{device="eth0"}`]
					delete(counters, "node_network_transmit_"+what+`{device="eth0"}`)
				}
			}},
		{"wrong-path", "", true, "a second link that nobody uses", usual, func(c *diagnose.Case) {
			s := snapshot(c, "node-1")
			s.Devices = append(s.Devices, diagnose.Device{Name: "eth1", Kind: "veth", MTU: 1500, Addrs: []string{"10.1.0.1/24"}})
		}},
		{"encryption", "", false, "WireGuard with its work on one CPU",
			expected{"encryption", "suspected", "node-1", "flannel.1", there, ""}, func(c *diagnose.Case) {
				for _, n := range c.Ends {
					device(c, n, "flannel.1").Kind = "wireguard"
				}
				scale(c, false, 0.1, diagnose.PodPod)
			}},
		{"encryption", "", true, "a VXLAN, which encrypts nothing", usual, func(*diagnose.Case) {}},
		{"checksum-errors", "", false, "bad UDP checksums of the tunnel from node-1",
			expected{"checksum-errors", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Udp_InCsumErrors", 60)
			}},
		{"checksum-errors", "", true, "one wrong checksum", usual, func(c *diagnose.Case) {
			add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_Udp_InCsumErrors", 1)
		}},
		{"rp-filter", "", false, "rp_filter=1 on node-2, replies by eth1",
			expected{"rp-filter", "supported", "node-2", "", there, ""}, func(c *diagnose.Case) {
				snapshot(c, "node-2").Sysctls["net.ipv4.conf.all.rp_filter"] = "1"
				add(c, diagnose.PodPod, false, diagnose.Bulk, "node-2", "node_netstat_TcpExt_IPReversePathFilter", 200)
			}},
		{"rp-filter", "", true, "rp_filter=1 and nothing is dropped", usual, func(c *diagnose.Case) {
			snapshot(c, "node-2").Sysctls["net.ipv4.conf.all.rp_filter"] = "1"
		}},
		{"dns-slow", "", false, "a resolver 60 ms away and five search domains",
			expected{"dns-slow", "supported", "node-1", "", "", ""}, func(c *diagnose.Case) {
				f := find(c, diagnose.DNS, false).Probes[diagnose.Lookup].Figures
				f[diagnose.P50], f[diagnose.Queries] = 0.3, 10
			}},
		{"dns-slow", "", true, "look-ups of 4 ms", usual, func(c *diagnose.Case) {
			find(c, diagnose.DNS, false).Probes[diagnose.Lookup].Figures[diagnose.P50] = 4e-3
		}},
		{"proxy-in-path", "", false, "istio-proxy in pod-2",
			expected{"proxy-in-path", "suspected", "node-2", "", "", "pod-2"}, func(c *diagnose.Case) {
				snapshot(c, "pod-2").Containers = []string{"app", "istio-proxy"}
			}},
		{"proxy-in-path", "", true, "a container of the user's own", usual, func(c *diagnose.Case) {
			snapshot(c, "pod-2").Containers = []string{"app", "log-shipper"}
		}},
		{"policy", "", false, "a policy without rules selects pod-2",
			expected{"policy", "suspected", "", "", there, ""}, func(c *diagnose.Case) {
				c.Policies = []string{"shop/deny-all"}
				p := find(c, diagnose.PodPod, false)
				clear(p.Probes)
				p.Probes[diagnose.Connect] = diagnose.Probe{Seconds: 0.6, Figures: map[string]float64{diagnose.Failed: 1}}
			}},
		{"policy", "", true, "a policy selects the pods and lets them through", usual, func(c *diagnose.Case) { c.Policies = []string{"shop/allow"} }},
		{"host-too", "", false, "node-1 sends a tenth of what node-2 sends, and nothing says why",
			expected{"host-too", "supported", "", "", there, ""}, func(c *diagnose.Case) {
				scale(c, false, 0.1, diagnose.Host, diagnose.PodNode, diagnose.NodePod, diagnose.PodPod)
			}},
		{"host-too", "", true, "nodes that send equally much both ways", usual, func(*diagnose.Case) {}},
	}
}
