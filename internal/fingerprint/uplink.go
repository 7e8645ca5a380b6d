package fingerprint

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// link holds what the kernel's ioctl says about an interface. /sys/class/net is not used,
// because inside a node's network namespace it still shows the host's interfaces.
type link struct {
	mtu      int
	driver   string
	firmware string
	features map[string]bool // by the kernel's names, as in `ethtool -k`
}

// offloads lists the features that decide how many packets the stack handles for a given number
// of bytes. A key is on if any of its features is on.
var offloads = []struct {
	key      string
	features []string
}{
	{"tso", []string{"tx-tcp-segmentation"}},
	{"tso6", []string{"tx-tcp6-segmentation"}},
	{"gso", []string{"tx-generic-segmentation"}},
	{"gso_udp", []string{"tx-udp-segmentation"}},
	{"gso_udp_tunnel", []string{"tx-udp_tnl-segmentation"}},
	{"gro", []string{"rx-gro"}},
	{"gro_hw", []string{"rx-gro-hw"}},
	{"lro", []string{"rx-lro"}},
	{"rx_checksum", []string{"rx-checksum"}},
	{"tx_checksum", []string{"tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"}},
}

// uplink sets uplink.*. All keys are absent if there is no such interface.
func (c *collector) uplink() {
	l, ok := c.link(c.opt.Uplink)
	if !ok {
		return
	}
	c.set("uplink.mtu", strconv.Itoa(l.mtu))
	c.set("uplink.driver", l.driver)
	c.set("uplink.firmware", l.firmware)
	for _, o := range offloads {
		known, on := false, false
		for _, f := range o.features {
			state, has := l.features[f]
			known, on = known || has, on || state
		}
		if known {
			c.set("uplink.offload."+o.key, map[bool]string{true: "on", false: "off"}[on])
		}
	}
	if out, ok := c.output("tc", "qdisc", "show", "dev", c.opt.Uplink); ok {
		if kinds, err := parseQdiscs(bytes.NewReader(out)); err == nil {
			c.set("uplink.qdisc", strings.Join(kinds, " "))
		}
	}
}

// parseQdiscs parses the output of `tc qdisc show dev X` and returns the kinds of qdiscs, each
// once, the root first: "mq fq_codel".
func parseQdiscs(r io.Reader) ([]string, error) {
	var kinds []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text()) // qdisc KIND HANDLE: root|parent …
		if len(f) < 4 || f[0] != "qdisc" || slices.Contains(kinds, f[1]) {
			continue
		}
		if f[3] == "root" {
			kinds = slices.Insert(kinds, 0, f[1])
		} else {
			kinds = append(kinds, f[1])
		}
	}
	return kinds, lines.Err()
}
