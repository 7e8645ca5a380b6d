package lab

import (
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/linux"
)

// preferredCongestion are Linux' default and the fallback that every kernel
// has. Other defaults of the host (bbr) are not taken over: without the fq
// qdisc bbr paces badly in namespaces.
var preferredCongestion = []string{"cubic", "reno"}

const congestionKey = "net.ipv4.tcp_congestion_control"

// chooseCongestion returns the congestion control of the lab's namespaces: want,
// or for CongestionAuto the first of preferredCongestion that a namespace may use.
// It sets them in a throw-away namespace, because only the machine's first
// namespace may use an algorithm that is not listed in
// net.ipv4.tcp_allowed_congestion_control (net/ipv4/tcp_cong.c).
func chooseCongestion(want string) (string, error) {
	box, err := linux.NewNetNS("congestion")
	if err != nil {
		return "", err
	}
	defer box.Close()
	if want != CongestionAuto {
		if err := box.SetSysctl(congestionKey, want); err != nil {
			return "", fmt.Errorf("--congestion-control %s: %w; namespaces may use: %s", want, err, readLine("/proc/sys/net/ipv4/tcp_allowed_congestion_control"))
		}
		return want, nil
	}
	for _, name := range preferredCongestion {
		if err = box.SetSysctl(congestionKey, name); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("a namespace may use none of %v; load the module tcp_cubic: %w", preferredCongestion, err)
}

func readLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
