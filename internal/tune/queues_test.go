package tune

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/linux"
)

// A queue's interrupts and the threads that send through it are of one NUMA
// node: the interface's own where the machine says which.
func TestQueuesOfANode(t *testing.T) {
	for name, want := range map[string]struct {
		irqs string // the core of each queue
		xps  string // the threads of each
	}{
		"second-node":  {"4 5 6", "0,3-4,7-8,11-12,15 1,5,9,13 2,6,10,14"},
		"study-2016":   {"0 9", "0-8,18-26 9-17,27-35"},
		"qemu-virtio":  {"0 4", "0-3 4-7"},
		"no-such-node": {"0 9", "0-8,18-26 9-17,27-35"},
	} {
		t.Run(name, func(t *testing.T) {
			s, known := shapes[name]
			if !known {
				s = shapes["study-2016"]
				s.numa = "7"
			}
			m, _ := build(t, s)
			f, err := Gather(t.Context(), m, nil)
			if err != nil {
				t.Fatal(err)
			}
			var irqs, xps []string
			cpus := f.irqCPUs(f.NICs[0])
			for q := range len(cpus) {
				irqs = append(irqs, fmt.Sprint(cpus[q]))
			}
			for _, threads := range f.xpsCPUs(f.NICs[0]) {
				xps = append(xps, linux.FormatCPUs(threads))
			}
			if got := strings.Join(irqs, " "); got != want.irqs {
				t.Errorf("interrupts of the queues go to %s, want %s", got, want.irqs)
			}
			if got := strings.Join(xps, " "); got != want.xps {
				t.Errorf("threads of the queues are %s, want %s", got, want.xps)
			}
		})
	}
}

// Tables of flows are powers of two, as the kernel makes them.
func TestRFSRounds(t *testing.T) {
	m, _ := build(t, shapes["second-node"])
	f, err := Gather(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for flows, want := range map[string]string{"60000": "65536 32768", "2": "2 1", "1": "1 1"} {
		items, err := Plan(f, []Wanted{{rfs, Params{"flows": flows}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := items[0].Changes[0].To + " " + items[0].Changes[1].To; got != want {
			t.Errorf("%s flows: table and share of a queue are %s, want %s", flows, got, want)
		}
	}
}

// The port of PCI Express above a device has interrupts, which are not the
// device's.
func TestIRQsOfThePort(t *testing.T) {
	s := shapes["qemu-e1000"]
	m, root := build(t, s)
	w := writer{t, root}
	w.file("sys/devices/pci0000:00/msi_irqs/24", "msi")
	w.file("proc/interrupts", "  CPU0 CPU1\n 23: 1 2 IO-APIC 23-fasteoi eth0\n 24: 1 2 PCI-MSI 0-edge PCIe PME, aerdrv")
	n, err := readNIC(m.Files, s.nic)
	if diff := cmp.Diff([]IRQ{{Number: 23}}, n.IRQs); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// A driver's bare interrupt beside those of its queues is not a queue's, also
// where the kernel writes the trigger as a word.
func TestBareInterrupt(t *testing.T) {
	s := shapes["second-node"]
	m, root := build(t, s)
	writer{t, root}.file("proc/interrupts", `           CPU0       CPU1
 70:          0          7   ITS-MSI 524289 Edge      ens1f0-TxRx-0
 71:          0          7   ITS-MSI 524290 Edge      ens1f0-TxRx-1
 73:          0          7   ITS-MSI 524291 Edge      ens1f0`)
	n, err := readNIC(m.Files, s.nic)
	if diff := cmp.Diff([]IRQ{{70, 0}, {71, 1}}, n.IRQs); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// What carries the default route is tuned: the devices below a bond, bridge or
// VLAN, and with IPv6 alone, too.
func TestDefaultNICs(t *testing.T) {
	const ipv6 = `fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     ens1f0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     dummy0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 000000ff 00000003 00000000 00000003     ens1f0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo`
	below := map[string][]string{"bond0.5": {"bond0"}, "bond0": {"ens1f0", "ens1f1"}, "br0": {"ens1f1", "tap0"}, "tun0": nil, "loop0": {"loop1"}, "loop1": {"loop0"}}
	for name, c := range map[string]struct {
		route string
		want  []string
	}{
		"device": {"ens1f0", []string{"ens1f0"}}, "bond": {"bond0", []string{"ens1f0", "ens1f1"}},
		"VLAN on a bond": {"bond0.5", []string{"ens1f0", "ens1f1"}}, "bridge": {"br0", []string{"ens1f1"}},
		"nothing below": {"tun0", []string{"tun0"}}, "a circle": {"loop0", []string{"loop0"}}, "IPv6 only": {"", []string{"ens1f0"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, root := build(t, shapes["second-node"])
			w := writer{t, root}
			w.link("sys/class/net/ens1f1", "ens1f0")
			for upper, lowers := range below {
				w.file("sys/class/net/"+upper+"/queues/rx-0/rps_cpus", "0000")
				for _, lower := range lowers {
					w.link("sys/class/net/"+upper+"/lower_"+lower, "../"+lower)
				}
			}
			if c.route != "" {
				w.defaultRoute(c.route)
			} else {
				w.file("proc/net/route", "Iface\tDestination")
				w.file("proc/net/ipv6_route", ipv6)
			}
			f, err := Gather(t.Context(), m, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range f.NICs {
				got = append(got, n.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// memory is a machine's files by path.
type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (m memory) ReadDir(name string) ([]string, error) {
	var names []string
	for path := range m {
		if rest, below := strings.CutPrefix(path, name+"/"); below {
			entry, _, _ := strings.Cut(rest, "/")
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); names == nil {
		return nil, fs.ErrNotExist
	}
	return names, nil
}

func (m memory) Readlink(string) (string, error) { return "", fs.ErrNotExist }

// Whatever a machine says of its CPUs: every queue has CPUs that there are,
// and every CPU one queue to send through.
func FuzzQueues(f *testing.F) {
	f.Add("0-7", "0-3", "4-7", "0,4", "4", 1, uint8(2))
	f.Add("0-3", "0-1", "2-3", "0,2", "0,2", -1, uint8(3)) // node 1 has second threads only
	f.Add("1,3", "", "0-3", "0-1", "2-3", 0, uint8(1))
	f.Fuzz(func(t *testing.T, online, node0, node1, siblings, more string, node int, tx uint8) {
		files := memory{
			"/sys/devices/system/cpu/online": online, "/sys/devices/system/node/node0/cpulist": node0, "/sys/devices/system/node/node1/cpulist": node1,
		}
		for _, list := range []string{siblings, more} {
			cpus, err := linux.ParseCPUs(list, maxCPUs-1)
			if err != nil {
				return
			}
			for _, cpu := range cpus {
				files[fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = list
			}
		}
		topology, err := readTopology(files)
		if err != nil || tx == 0 {
			return
		}
		facts := &Facts{Topology: topology}
		n := NIC{Node: node, TX: int(tx)}
		for q := range n.TX {
			n.IRQs = append(n.IRQs, IRQ{q, q})
		}
		var all, got []int
		for _, c := range topology.CPUs {
			all = append(all, c.ID)
		}
		for q, cpu := range facts.irqCPUs(n) {
			if !slices.Contains(all, cpu) {
				t.Errorf("queue %d is bound to CPU %d of %v", q, cpu, all)
			}
		}
		for _, cpus := range facts.xpsCPUs(n) {
			got = append(got, cpus...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Error(diff)
		}
	})
}
