//go:build linux

package underlay

import (
	"fmt"
	"strings"

	"github.com/safchain/ethtool"

	"github.com/cnibench/cnibench/internal/linux"
)

// isWireFeature says whether an interface feature lets packets cross a link that no
// cable would carry: larger than the MTU, or without their checksum. Names are those
// of the kernel, as `ethtool -k` shows them.
//
// tx-generic-segmentation (GSO) stays on: it is not the device's but the
// stack's own last step before the device, where every packet that is too
// large is cut into frames (net/core/dev.c, validate_xmit_skb). Without GSO the
// sockets of the host network, which sit on the uplink, would have to cut the
// packets themselves: the baseline would bear a cost that no contender has.
func isWireFeature(name string) bool {
	switch name {
	case "tx-generic-segmentation":
		return false
	case "rx-gro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-lro", "rx-checksum", "tx-gso-robust", "tx-gso-partial", "tx-gso-list":
		return true
	}
	return strings.HasPrefix(name, "tx-checksum-") || strings.HasPrefix(name, "tx-") && strings.HasSuffix(name, "-segmentation")
}

// onWire switches those features off: every packet is then at most an MTU long and
// has its checksum, as on a cable.
func onWire(box *linux.NetNS, device string) error {
	err := box.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		features, err := e.FeaturesWithState(device)
		if err != nil {
			return err
		}
		off := map[string]bool{}
		for name, state := range features {
			if isWireFeature(name) && state.Active && !state.NeverChanged && state.Available {
				off[name] = false
			}
		}
		if err := e.Change(device, off); err != nil {
			return err
		}
		return checkOff(e, device)
	})
	if err != nil {
		return fmt.Errorf("offloads of %s in %s: %w; run with --offload host", device, box.Name, err)
	}
	return nil
}

// checkOff returns an error if the driver left a feature on, which it names.
func checkOff(e *ethtool.Ethtool, device string) error {
	features, err := e.Features(device)
	if err != nil {
		return err
	}
	for _, name := range []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation", "tx-udp_tnl-segmentation", "rx-gro", "tx-checksum-ip-generic"} {
		if features[name] {
			return fmt.Errorf("%s stays on", name)
		}
	}
	return nil
}
