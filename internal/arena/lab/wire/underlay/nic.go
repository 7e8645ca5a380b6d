//go:build linux

package underlay

import (
	"fmt"
	"path"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/host"
)

// NICs makes the machine's network devices of that driver the uplinks of the nodes, one
// each. What is behind the devices joins them. They are as their driver makes them, whatever
// was set on them before. This process must be in the machine's first network namespace.
//
// Only for a guest's: whoever else uses one of them loses it.
func NICs(driver string, nodes []*wire.Node, l Link) error {
	names, err := remake(driver)
	if err != nil {
		return err
	}
	if len(names) < len(nodes) {
		return fmt.Errorf("this machine has %d network devices of driver %s for %d nodes", len(names), driver, len(nodes))
	}
	for i, n := range nodes {
		if err := plug(names[i], n); err != nil {
			return fmt.Errorf("%s: %s: %w", n.Name, names[i], err)
		}
		if err := uplink(n, l); err != nil {
			return err
		}
	}
	for _, n := range nodes { // all links come up at the same time
		if err := n.OnUplink(awaitLink); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// rfsTable is a setting of network devices that the devices do not hold.
const rfsTable = "/proc/sys/net/core/rps_sock_flow_entries"

// remake takes the driver's devices from it and gives them back, and returns their names
// in the first network namespace. A device keeps what is set on it (rings, offloads,
// queues) in every namespace; the driver makes it anew.
func remake(driver string) ([]string, error) {
	machine := host.Tree("/")
	var names []string
	for _, bus := range []string{"pci", "virtio"} {
		devices, err := machine.ReadDir("/sys/bus/" + bus + "/devices")
		if wire.IfPresent(err) != nil {
			return nil, err
		}
		for _, device := range devices {
			at := "/sys/bus/" + bus + "/devices/" + device
			if link, err := machine.Readlink(at + "/driver"); err != nil || path.Base(link) != driver {
				continue
			}
			for _, action := range []string{"unbind", "bind"} {
				if err := machine.WriteFile("/sys/bus/"+bus+"/drivers/"+driver+"/"+action, []byte(device)); err != nil {
					return nil, fmt.Errorf("make %s %s anew: %w", driver, device, err)
				}
			}
			made, err := machine.ReadDir(at + "/net")
			if err != nil {
				return nil, fmt.Errorf("make %s %s anew: %w", driver, device, err)
			}
			names = append(names, made...)
		}
	}
	return names, wire.IfPresent(machine.WriteFile(rfsTable, []byte("0\n")))
}

// plug moves the device into the node as its uplink.
func plug(name string, n *wire.Node) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.LinkSetNsFd(link, n.NS.FD()); err != nil {
		return err
	}
	return n.OnLink(name, func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetName(link, wire.UplinkName) })
}

// linkPatience is how long a driver may take to find its link up. The one of e1000 looks
// every two seconds.
const linkPatience = 20 * time.Second

// awaitLink waits until frames can pass the uplink.
func awaitLink(_ *wire.Node, h *netlink.Handle, uplink netlink.Link) (err error) {
	for deadline := time.Now().Add(linkPatience); uplink.Attrs().OperState != netlink.OperUp; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not up within %v", wire.UplinkName, linkPatience)
		}
		if uplink, err = h.LinkByName(wire.UplinkName); err != nil {
			return err
		}
	}
	return nil
}
