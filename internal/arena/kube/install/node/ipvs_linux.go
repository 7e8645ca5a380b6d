package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ofKubeProxyIPVS is the interface of kube-proxy's IPVS mode. If it exists, the virtual
// servers are kube-proxy's and change with the Services.
const ofKubeProxyIPVS = "kube-ipvs0"

// readIPVS lists the virtual servers of the kernel's load balancer.
func readIPVS(s State) error {
	if slices.Contains(s["interface"], ofKubeProxyIPVS) {
		return nil
	}
	f, err := os.Open("/proc/net/ip_vs")
	if errors.Is(err, os.ErrNotExist) {
		return nil // the kernel has no IPVS
	}
	if err != nil {
		return fmt.Errorf("list IPVS servers: %w", err)
	}
	defer f.Close()
	servers, err := parseIPVS(f)
	for _, server := range servers {
		s.add("ipvs server", server)
	}
	return err
}

// parseIPVS reads /proc/net/ip_vs: a virtual server's line begins with its
// protocol, a real server's with an arrow.
func parseIPVS(r io.Reader) ([]string, error) {
	var servers []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && slices.Contains([]string{"TCP", "UDP", "SCTP", "FWM"}, fields[0]) {
			servers = append(servers, fields[0]+" "+fields[1])
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("list IPVS servers: %w", err)
	}
	return servers, nil
}

// cleanIPVS removes all virtual servers, as they do not say whose they are. It removes
// none if the state to keep is unknown or has some, or if they are kube-proxy's.
func cleanIPVS(wanted bool, keep State) ([]string, error) {
	current := State{}
	if err := errors.Join(readLinks(current), readIPVS(current)); err != nil {
		return nil, err
	}
	if !wanted || keep == nil || len(keep["ipvs server"]) > 0 || len(current["ipvs server"]) == 0 {
		return nil, nil
	}
	family, err := netlink.GenlFamilyGet("IPVS")
	if err != nil {
		return nil, fmt.Errorf("IPVS servers: %w", err)
	}
	const flush = 17 // linux/ip_vs.h, IPVS_CMD_FLUSH
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	request.AddData(&nl.Genlmsg{Command: flush, Version: 1})
	if _, err := request.Execute(unix.NETLINK_GENERIC, 0); err != nil {
		return nil, fmt.Errorf("IPVS servers: %w", err)
	}
	return []string{"all IPVS servers"}, nil
}
