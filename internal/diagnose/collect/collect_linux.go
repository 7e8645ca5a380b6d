// Package collect takes the snapshot of an endpoint for package diagnose: of the network
// namespace that this process is in, and of the machine below it. It changes nothing, needs
// no privilege, and leaves out what it may not read. Next: Snapshot, below.
package collect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/tune"
)

// Limits of what is listed, so that a node of a thousand pods gives a short snapshot.
const (
	maxDevices = 256
	maxRoutes  = 128
)

// features are the offloads that decide how many packets carry the bytes.
var features = []string{
	"tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6", "tx-scatter-gather", "tx-tcp-segmentation", "tx-tcp6-segmentation",
	"tx-generic-segmentation", "tx-udp-segmentation", "tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "rx-checksum", "rx-gro", "rx-gro-hw",
	"rx-lro", "rx-udp-gro-forwarding", "rx-gro-list",
}

// sysctls are those that decide on speed or drop packets.
var sysctls = []string{
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.ip_forward",
	"net.ipv4.conf.all.rp_filter", "net.ipv4.conf.default.rp_filter", "net.core.netdev_max_backlog", "net.core.netdev_budget", "net.core.rmem_max",
	"net.core.wmem_max", "net.core.default_qdisc", "net.ipv4.neigh.default.gc_thresh3", "net.bridge.bridge-nf-call-iptables", "net.ipv4.tcp_ecn",
}

// Snapshot returns what this process sees. Names of the endpoint are for the caller to set.
// An error is that not even the devices can be listed.
func Snapshot() (diagnose.Snapshot, error) {
	s := diagnose.Snapshot{Sysctls: map[string]string{}}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		s.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	if text, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
		if cpus, err := linux.ParseCPUs(strings.TrimSpace(string(text)), 1<<16); err == nil {
			s.CPUs = len(cpus)
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		return s, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	s.Devices = devices(links, names)
	for _, d := range s.Devices {
		sysctl(&s, "net.ipv4.conf."+strings.ReplaceAll(d.Name, ".", "/")+".rp_filter")
	}
	for _, key := range sysctls {
		sysctl(&s, key)
	}
	s.Qdiscs = qdiscs(names)
	s.Routes = routes(names)
	s.Rules = rules()
	if neighbours, err := netlink.NeighList(0, netlink.FAMILY_ALL); err == nil {
		s.Neighbours = len(neighbours)
	}
	s.ConntrackCount, s.ConntrackMax = number("/proc/sys/net/netfilter/nf_conntrack_count"), number("/proc/sys/net/netfilter/nf_conntrack_max")
	s.CPULimit, _ = sysmon.CPULimit(sysmon.Machine())
	if f, err := os.Open("/etc/resolv.conf"); err == nil {
		defer f.Close()
		s.Resolver = parseResolver(f)
	}
	return s, nil
}

func sysctl(s *diagnose.Snapshot, key string) {
	file := "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(key)
	if text, err := os.ReadFile(file); err == nil {
		s.Sysctls[key] = strings.Join(strings.Fields(string(text)), " ")
	}
}

func number(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // no number is none
	return n
}

func devices(links []netlink.Link, names map[int]string) (list []diagnose.Device) {
	e, err := ethtool.NewEthtool()
	if err == nil {
		defer e.Close()
	}
	sys := tune.OwnSys()
	if sys == nil {
		sys = host.Tree("/sys")
	}
	for _, l := range links[:min(len(links), maxDevices)] {
		a := l.Attrs()
		d := diagnose.Device{Name: a.Name, MTU: a.MTU, Master: names[a.MasterIndex], RXQueues: a.NumRxQueues}
		if kind := l.Type(); kind != "device" {
			d.Kind = kind
			if kind == "tuntap" {
				d.Kind = "tun"
			}
		}
		if a.Xdp != nil && a.Xdp.Attached {
			d.Programs = append(d.Programs, "xdp")
		}
		if addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL); err == nil {
			for _, addr := range addrs {
				if !addr.IP.IsLinkLocalUnicast() {
					d.Addrs = append(d.Addrs, addr.IPNet.String())
				}
			}
		}
		if e != nil && a.Name != "lo" {
			if all, err := e.Features(a.Name); err == nil {
				d.Features = map[string]bool{}
				for _, f := range features {
					if on, known := all[f]; known {
						d.Features[f] = on
					}
				}
			}
			if driver, err := e.DriverName(a.Name); err == nil && driver != d.Kind {
				d.Driver = driver
			}
		}
		// The mounted /sys can be another namespace's.
		if index, err := sys.ReadFile("/class/net/" + a.Name + "/ifindex"); err == nil && strings.TrimSpace(string(index)) == strconv.Itoa(a.Index) {
			queues, _ := sys.ReadDir("/class/net/" + a.Name + "/queues") // none: nothing is steered
			for _, q := range queues {
				if text, err := sys.ReadFile(path.Join("/class/net", a.Name, "queues", q, "rps_cpus")); err == nil && strings.Trim(string(text), "0,\n") != "" {
					d.RPS = append(d.RPS, strings.TrimSpace(string(text)))
				}
			}
		}
		list = append(list, d)
	}
	return list
}

func qdiscs(names map[int]string) (list []diagnose.Qdisc) {
	all, err := netlink.QdiscList(nil)
	if err != nil {
		return nil
	}
	for _, q := range all {
		a := q.Attrs()
		one := diagnose.Qdisc{Device: names[a.LinkIndex], Kind: q.Type()}
		if one.Kind == "noqueue" || one.Device == "lo" {
			continue
		}
		switch q := q.(type) {
		case *netlink.Tbf:
			one.Rate = 8 * float64(q.Rate)
		case *netlink.Netem:
			one.Rate = 8 * float64(q.Rate64)
			one.Delay = float64(netlink.TickInUsec()) // ticks a microsecond
			if one.Delay > 0 {
				one.Delay = float64(q.Latency) / one.Delay / 1e6
			}
			one.Loss = float64(q.Loss) / (1<<32 - 1)
		case *netlink.Htb:
			one.Rate = slowestClass(a.LinkIndex)
		}
		if st := a.Statistics; st != nil {
			if st.Basic != nil {
				one.Packets = float64(st.Basic.Packets)
			}
			if st.Queue != nil {
				one.Drops, one.Overlimits = float64(st.Queue.Drops), float64(st.Queue.Overlimits)
			}
		}
		list = append(list, one)
		if len(list) >= maxDevices {
			break
		}
	}
	return list
}

// slowestClass returns the ceiling of the slowest HTB class of a device in bit/s.
func slowestClass(index int) (rate float64) {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return 0
	}
	classes, err := netlink.ClassList(link, netlink.HANDLE_NONE)
	if err != nil {
		return 0
	}
	for _, c := range classes {
		if h, ok := c.(*netlink.HtbClass); ok && h.Ceil > 0 && (rate == 0 || 8*float64(h.Ceil) < rate) {
			rate = 8 * float64(h.Ceil)
		}
	}
	return rate
}

func routes(names map[int]string) (list []diagnose.Route) {
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil
	}
	for _, r := range all[:min(len(all), maxRoutes)] {
		one := diagnose.Route{To: "default", Device: names[r.LinkIndex], MTU: r.MTU}
		if r.Dst != nil && r.Dst.String() != "0.0.0.0/0" {
			one.To = r.Dst.String()
		}
		if r.Gw != nil {
			one.Via = r.Gw.String()
		}
		list = append(list, one)
	}
	return list
}

// nf_tables of the kernel: include/uapi/linux/netfilter/nf_tables.h.
const (
	getRule   = 7 // NFT_MSG_GETRULE
	ruleTable = 1 // NFTA_RULE_TABLE
	ruleChain = 2 // NFTA_RULE_CHAIN
)

// rules counts the rules of nftables by chain, those of iptables-nft too; nil if this
// process may not list them.
func rules() map[string]int {
	counts := map[string]int{}
	for _, family := range []struct {
		number uint8
		name   string
	}{{unix.NFPROTO_IPV4, "ip"}, {unix.NFPROTO_IPV6, "ip6"}, {unix.NFPROTO_INET, "inet"}, {unix.NFPROTO_BRIDGE, "bridge"}} {
		req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|getRule, unix.NLM_F_DUMP)
		req.AddData(&nl.Nfgenmsg{NfgenFamily: family.number, Version: nl.NFNETLINK_V0})
		messages, err := req.Execute(unix.NETLINK_NETFILTER, 0)
		if err != nil {
			if errors.Is(err, unix.EPERM) {
				return nil
			}
			continue
		}
		for _, m := range messages {
			if len(m) < nl.SizeofNfgenmsg {
				continue
			}
			attributes, err := nl.ParseRouteAttr(m[nl.SizeofNfgenmsg:])
			if err != nil {
				continue
			}
			var table, chain string
			for _, a := range attributes {
				switch a.Attr.Type {
				case ruleTable:
					table = unix.ByteSliceToString(a.Value)
				case ruleChain:
					chain = unix.ByteSliceToString(a.Value)
				}
			}
			counts[family.name+" "+table+" "+chain]++
		}
	}
	return counts
}

// parseResolver reads resolv.conf(5).
func parseResolver(r io.Reader) *diagnose.Resolver {
	out := &diagnose.Resolver{Ndots: 1}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			out.Servers = append(out.Servers, fields[1])
		case "search":
			out.Search = slices.Clone(fields[1:])
		case "options":
			for _, o := range fields[1:] {
				if n, ok := strings.CutPrefix(o, "ndots:"); ok {
					if v, err := strconv.Atoi(n); err == nil && v >= 0 {
						out.Ndots = v
					}
				}
			}
		}
	}
	return out
}
