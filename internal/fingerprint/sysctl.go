package fingerprint

import (
	"io/fs"
	"path"
	"strings"
)

const netDir = "proc/sys/net"

// sysctls sets sysctl.net.*, and the keys tcp.*, conntrack.* and br_netfilter, under which
// readers look for some sysctls.
func (c *collector) sysctls() {
	for _, family := range []string{"core", "ipv4", "netfilter", "bridge"} {
		// WalkDir's errors are ignored: a file that only root may read, a module that is not
		// loaded.
		_ = fs.WalkDir(c.root, path.Join(netDir, family), func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && perInterface(name):
				return fs.SkipDir
			case !d.IsDir() && !unpublished[path.Base(name)]:
				key := strings.TrimPrefix(name, "proc/sys/")
				c.set("sysctl."+strings.ReplaceAll(key, "/", "."), cut(c.read(name)))
			}
			return nil
		})
	}
	c.set("tcp.congestion_control", c.read(netDir+"/ipv4/tcp_congestion_control"))
	c.set("tcp.available_congestion_control", c.read(netDir+"/ipv4/tcp_available_congestion_control"))
	c.set("conntrack.max", c.read(netDir+"/netfilter/nf_conntrack_max"))
	c.set("conntrack.count", c.read(netDir+"/netfilter/nf_conntrack_count"))
	c.set("br_netfilter", c.brNetfilter())
}

// cut shortens tables, such as a list of reserved ports or a bitmap of CPUs, which explain
// nothing in full.
func cut(value string) string {
	const longest = 160
	if len(value) <= longest {
		return value
	}
	return strings.ToValidUTF8(value[:longest], "") + "…"
}

// perInterface reports whether the folder holds the settings of one interface. There are
// hundreds of them, and the run chose the names. "all" and "default" are kept.
func perInterface(dir string) bool {
	parent := path.Base(path.Dir(dir))
	name := path.Base(dir)
	return (parent == "conf" || parent == "neigh") && name != "all" && name != "default"
}

// unpublished lists keys of this boot that would help others to forge packets to the machine or
// to steer its queues, and a counter.
var unpublished = map[string]bool{
	"tcp_fastopen_key":        true,
	"netdev_rss_key":          true,
	"fib_multipath_hash_seed": true,
	"stable_secret":           true,
	"nf_conntrack_count":      true, // conntrack.count
	"flush":                   true, // can only be written
}

// brNetfilter returns whether bridged packets pass iptables: "on", "off" (the module is loaded,
// but not called) or "not loaded"; "" if sysctls cannot be read.
func (c *collector) brNetfilter() string {
	if state := onOff(c.read(netDir + "/bridge/bridge-nf-call-iptables")); state != "" {
		return state
	}
	if _, err := fs.Stat(c.root, netDir+"/ipv4"); err != nil {
		return ""
	}
	if _, err := fs.Stat(c.root, netDir+"/bridge"); err != nil {
		return "not loaded"
	}
	return ""
}
