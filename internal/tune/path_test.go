package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// virtual writes a device without hardware; files are more of it, by name.
func (w writer) virtual(name, index string, files map[string]string) {
	at := "sys/devices/virtual/net/" + name + "/"
	w.link("sys/class/net/"+name, "../../devices/virtual/net/"+name)
	all := map[string]string{
		"flags": "0x1003", "type": "1", "ifindex": index, "iflink": index, "uevent": "INTERFACE=" + name,
		"queues/rx-0/rps_cpus": "00", "queues/rx-0/rps_flow_cnt": "0", "queues/tx-0/tx_timeout": "0",
	}
	maps.Copy(all, files)
	for file, text := range all {
		w.file(at+file, text)
	}
}

// node is a machine with a tunnel, a bridge and two pods on it, and some devices that are none
// of the path.
func node(t *testing.T) (*Machine, string) {
	t.Helper()
	m, root := build(t, shapes["qemu-virtio"])
	w := writer{t, root}
	w.file("sys/devices/pci0000:00/0000:00:03.0/virtio3/net/eth0/flags", "0x1003")
	w.virtual("lo", "1", map[string]string{"type": "772", "flags": "0x9"})
	w.virtual("flannel.1", "3", map[string]string{"uevent": "DEVTYPE=vxlan\nINTERFACE=flannel.1", "iflink": "2"})
	w.virtual("cni0", "4", map[string]string{"uevent": "DEVTYPE=bridge", "bridge/forward_delay": "1500"})
	w.virtual("veth1", "5", map[string]string{"iflink": "2", "brport/cost": "2"})
	w.virtual("veth2", "6", map[string]string{"iflink": "2"})
	w.virtual("tunl0", "7", map[string]string{"type": "768", "flags": "0x80"}) // down, as the kernel makes it
	w.virtual("tap0", "8", map[string]string{"tun_flags": "0x1002"})
	w.virtual("eth0.7", "9", map[string]string{"iflink": "2", "lower_eth0/ifindex": "2"})
	w.virtual("dummy0", "10", nil)
	return m, root
}

// Without names the devices that pods' packets pass are planned, too: each by the settings that
// mean something there.
func TestPath(t *testing.T) {
	m, _ := node(t)
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range slices.Concat(f.NICs, f.Path) {
		got = append(got, strings.TrimSpace(n.Name+" "+n.Kind))
	}
	if diff := cmp.Diff([]string{"eth0", "flannel.1 vxlan", "cni0 bridge", "veth1 veth", "veth2 veth"}, got); diff != "" {
		t.Error(diff)
	}
	m.NICs.(*fakeNICs).features["tx-tcp-segmentation"] = false
	places := map[string][]string{}
	for _, item := range planOf(t, m, "offloads", "rps", "irq") {
		for _, c := range item.Pending() {
			places[item.Setting.Name] = append(places[item.Setting.Name], c.Name)
		}
	}
	want := map[string][]string{
		"offloads": {"eth0 tx-tcp-segmentation", "eth0 rx-gro", "flannel.1 tx-tcp-segmentation", "flannel.1 rx-gro", "cni0 tx-tcp-segmentation", "cni0 rx-gro", "veth1 tx-tcp-segmentation", "veth2 tx-tcp-segmentation"},
	}
	if diff := cmp.Diff(want["offloads"], places["offloads"]); diff != "" {
		t.Error(diff)
	}
	for setting, device := range map[string]string{"rps": "flannel.1", "irq": "/proc/irq/"} {
		if text := fmt.Sprint(places[setting]); !strings.Contains(text, device) || strings.Contains(text, "cni0") || strings.Contains(text, "veth") {
			t.Errorf("%s: %s", setting, text)
		}
	}
	if f, err = Gather(t.Context(), m, []string{"eth0"}); err != nil || len(f.Path) > 0 {
		t.Errorf("%v beside the named interface: %v", f.Path, err)
	}
}
