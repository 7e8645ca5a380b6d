package fingerprint

import (
	"net"

	"github.com/safchain/ethtool"
)

// readLink asks the kernel about an interface of the caller's network namespace.
func readLink(name string) (link, bool) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return link{}, false
	}
	l := link{mtu: iface.MTU}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return l, true
	}
	defer e.Close()
	if d, err := e.DriverInfo(name); err == nil {
		l.driver = d.Driver
		if d.FwVersion != "N/A" {
			l.firmware = d.FwVersion
		}
	}
	if features, err := e.Features(name); err == nil {
		l.features = features
	}
	return l, true
}
