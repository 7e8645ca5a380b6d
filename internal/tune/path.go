package tune

import (
	"slices"
	"strconv"
	"strings"
)

// The kinds of a NIC that no hardware is behind; a tunnel has that of the kernel: vxlan,
// geneve, wireguard, ipip, gre.
const (
	kindBridge = "bridge"
	kindVeth   = "veth" // the node's end of a pod's device
)

// tunnelTypes are the kinds of tunnels by /sys/class/net/NAME/type (include/uapi/linux/if_arp.h).
var tunnelTypes = map[string]string{"768": "ipip", "769": "ip6tnl", "776": "sit", "778": "gre", "823": "ip6gre"}

// tunnelNames are the kinds of tunnels by DEVTYPE of /sys/class/net/NAME/uevent.
var tunnelNames = []string{"vxlan", "geneve", "wireguard"}

// path returns the devices that pods' packets pass beside the uplinks, tunnels first, then
// bridges, then the ends of pods' devices. A device that goes meanwhile is left out.
func (f *Facts) path() (list []NIC) {
	names, _ := f.m.Files.ReadDir(strings.TrimSuffix(netClass, "/")) // none: there are no devices
	for _, name := range names {
		if slices.ContainsFunc(f.NICs, func(n NIC) bool { return n.Name == name }) {
			continue
		}
		kind := f.kindOf(name)
		if kind == "" {
			continue
		}
		if n, err := readNIC(f.m.Files, name); err == nil {
			n.Kind = kind
			list = append(list, n)
		}
	}
	rank := func(n NIC) int { return slices.Index([]string{kindBridge, kindVeth}, n.Kind) }
	slices.SortStableFunc(list, func(a, b NIC) int { return rank(a) - rank(b) })
	return list
}

// kindOf returns the kind of a device of the path; "" for every other, and for one that is down.
func (f *Facts) kindOf(name string) string {
	at := netClass + name
	read := func(file string) string {
		text, _ := f.m.Files.ReadFile(at + "/" + file) // an error: it does not say
		return strings.TrimSpace(string(text))
	}
	has := func(folder string) bool {
		_, err := f.m.Files.ReadDir(at + "/" + folder)
		return err == nil
	}
	const up = 1 // IFF_UP
	if flags, err := strconv.ParseUint(read("flags"), 0, 32); err != nil || flags&up == 0 || has("device") {
		return ""
	}
	for line := range strings.Lines(read("uevent")) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok && slices.Contains(tunnelNames, kind) {
			return kind
		}
	}
	entries, _ := f.m.Files.ReadDir(at)
	lower := slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(e, "lower_") })
	switch {
	case tunnelTypes[read("type")] != "":
		return tunnelTypes[read("type")]
	case has("bridge"):
		return kindBridge
	case read("tun_flags") != "" || lower:
		return ""
	case has("brport") || read("iflink") != read("ifindex"): // its other end is elsewhere
		return kindVeth
	}
	return ""
}
