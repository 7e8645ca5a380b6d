package load

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// spareFiles are the descriptors that a process needs beside its connections.
const spareFiles = 32

// raiseFileLimit raises the soft limit on open files, and the hard one where
// that is permitted, to what the connections need.
func raiseFileLimit(connections int) error {
	need := uint64(connections) + spareFiles
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return fmt.Errorf("load: limit on open files: %w", err)
	}
	if lim.Cur >= need {
		return nil
	}
	wanted := unix.Rlimit{Cur: need, Max: max(lim.Max, need)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &wanted); err != nil {
		return fmt.Errorf("load: %d connections need %d open files and the limit is %d (%w); raise it with ulimit -Hn %d as root, LimitNOFILE= in a systemd unit, and fs.nr_open if that is lower",
			connections, need, lim.Max, err, need)
	}
	return nil
}

// checkPorts says whether the kernel has a local port for every connection to
// one target.
func checkPorts(connections int) error {
	const setting = "net.ipv4.ip_local_port_range"
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return nil // no /proc: the connections themselves will tell
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
		return fmt.Errorf("load: read %s: %w", setting, err)
	}
	if ports := high - low + 1; connections > ports {
		return fmt.Errorf("load: %d connections to one target need as many local ports and %s gives %d; widen it, e.g. sysctl -w %s=\"1024 65535\"",
			connections, setting, ports, setting)
	}
	return nil
}
