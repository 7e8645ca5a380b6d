package load

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/load/fdtable"
)

// spareFiles are the descriptors that a file table needs beside its share of
// the connections.
const spareFiles = 64

// spread returns the number of threads for the connections, and whether each thread
// needs a file table of its own.
func spread(cfg Config) (threads int, ownTables bool, err error) {
	threads = min(max(1, cfg.Threads), cfg.Connections)
	// One table for all threads is simplest. Raising its limit can fail without root.
	if err := raiseFileLimit(cfg.Connections + spareFiles); err == nil {
		return threads, false, nil
	}
	limit, err := fdtable.Limit()
	if err != nil {
		return 0, false, fmt.Errorf("load: %w", err)
	}
	each := max(1, limit-spareFiles)
	minimum := (cfg.Connections + each - 1) / each
	if minimum > maxThreads {
		need := (cfg.Connections+maxThreads-1)/maxThreads + spareFiles
		return 0, false, fmt.Errorf("load: %d connections need %d open files in each of %d threads and the limit is %d; raise it with ulimit -Hn %d as root, LimitNOFILE= in a systemd unit, and fs.nr_open if that is lower",
			cfg.Connections, need, maxThreads, limit, need)
	}
	return max(threads, minimum), true, nil
}

// raiseFileLimit raises the soft limit on open files, and the hard one where
// that is permitted.
func raiseFileLimit(need int) error {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return err
	}
	if lim.Cur >= uint64(need) {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(need), Max: max(lim.Max, uint64(need))})
}

// checkPorts returns an error if the kernel has fewer local ports than the load has
// connections.
func checkPorts(cfg Config) error {
	const setting = "net.ipv4.ip_local_port_range"
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return nil // without /proc, a connection that gets no port fails and says so
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
		return fmt.Errorf("load: read %s: %w", setting, err)
	}
	sources := max(1, len(cfg.Sources))
	if ports := (high - low + 1) * sources; cfg.Connections > ports {
		return fmt.Errorf("load: %d connections to one target need as many local ports, and %s gives %d over %d source addresses; widen it, e.g. sysctl -w %s=\"1024 65535\", or give more addresses with --source",
			cfg.Connections, setting, ports, sources, setting)
	}
	return nil
}
