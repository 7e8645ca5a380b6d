package tune

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// The trees that settings are planned on: the shapes of real machines, as
// their kernels lay them out.

// shape is a machine's CPUs and interface.
type shape struct {
	nodes    []string // CPU list of each NUMA node
	siblings int      // distance between the threads of a core; 0: no SMT
	governor string   // "" where the CPUs have none
	smt      string   // smt/control
	nic      string
	driver   string // "" for none
	numa     string // numa_node of the interface
	rx, tx   int
	irqs     []string // "265 eth0-TxRx-0"
	mask     string   // of a queue, as the kernel prints an empty one
	mtu      string
	intx     bool // the device has no message-signalled interrupts
	bare     bool // a machine that lets nothing be set that it could leave out
}

var shapes = map[string]shape{
	// Two c4.8xlarge of the 2016 study: 36 threads in two NUMA nodes, an
	// ixgbevf with two queues.
	"study-2016": {
		nodes: []string{"0-8,18-26", "9-17,27-35"}, siblings: 18, smt: "on",
		nic: "eth0", driver: "ixgbevf", numa: "-1", rx: 2, tx: 2, mask: "00000000,00000000", mtu: "9001",
		irqs: []string{"265 eth0-TxRx-0", "266 eth0-TxRx-1", "267 eth0"},
	},
	// A laptop: four cores with two threads, cpufreq, an e1000e with one queue.
	"laptop": {
		nodes: []string{"0-7"}, siblings: 4, governor: "powersave", smt: "on",
		nic: "enp0s31f6", driver: "e1000e", numa: "-1", rx: 1, tx: 1, mask: "00", mtu: "1500",
		irqs: []string{"128 enp0s31f6"},
	},
	// An ARM server: 80 cores without SMT, a queue for each of 64 of them.
	"arm-server": {
		nodes: []string{"0-79"}, governor: "schedutil", smt: "notimplemented",
		nic: "enP2s1f0np0", driver: "mlx5_core", numa: "0", rx: 80, tx: 80, mask: "0000,00000000,00000000", mtu: "1500",
		irqs: []string{"210 mlx5_async0@pci:0002:01:00.0", "211 mlx5_comp0@pci:0002:01:00.0", "212 mlx5_comp1@pci:0002:01:00.0"},
	},
	// A server whose interface hangs on its second NUMA node, with three queues
	// for 16 threads.
	"second-node": {
		nodes: []string{"0-3,8-11", "4-7,12-15"}, siblings: 8, governor: "performance", smt: "on",
		nic: "ens1f0", driver: "ixgbe", numa: "1", rx: 3, tx: 3, mask: "0000", mtu: "1500",
		irqs: []string{"70 ens1f0-TxRx-0", "71 ens1f0-TxRx-1", "72 ens1f0-TxRx-2", "73 ens1f0"},
	},
	// QEMU, recorded from a guest with Debian's 6.1: two NUMA nodes, a virtio
	// interface with two queues.
	"qemu-virtio": {
		nodes: []string{"0-3", "4-7"}, smt: "notsupported",
		nic: "eth0", driver: "virtio_net", numa: "-1", rx: 2, tx: 2, mask: "00", mtu: "1500",
		irqs: []string{"24 virtio0-config", "25 virtio0-input.0", "26 virtio0-output.0", "27 virtio0-input.1", "28 virtio0-output.1"},
	},
	// The same with an e1000, whose one interrupt is a line of the bus.
	"qemu-e1000": {
		nodes: []string{"0-3"}, smt: "notsupported",
		nic: "eth0", driver: "e1000", numa: "-1", rx: 1, tx: 1, mask: "0", mtu: "1500", intx: true,
		irqs: []string{"23 eth0"},
	},
	// A small virtual machine: nothing to set.
	"vm": {
		nodes: []string{"0-1"}, smt: "notsupported",
		nic: "eth0", driver: "virtio_net", numa: "-1", rx: 1, tx: 1, mask: "0", mtu: "1500", bare: true,
		irqs: []string{"40 virtio3-config", "41 virtio3-input.0", "42 virtio3-output.0"},
	},
}

// build writes the tree and returns its machine.
func build(t testing.TB, s shape) (*Machine, string) {
	t.Helper()
	root := t.TempDir()
	w := writer{t, root}
	var all []int
	for n, list := range s.nodes {
		cpus, err := linux.ParseCPUs(list, maxCPUs-1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cpus...)
		w.file(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", n), list)
	}
	w.file("sys/devices/system/node/online", "0")
	w.file("sys/devices/system/cpu/online", linux.FormatCPUs(all))
	w.file("sys/devices/system/cpu/smt/control", s.smt)
	for _, cpu := range all {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		threads := []int{cpu}
		if s.siblings > 0 {
			core := cpu % s.siblings
			threads = []int{core, core + s.siblings}
		}
		w.file(dir+"topology/thread_siblings_list", linux.FormatCPUs(threads))
		if s.governor != "" {
			w.file(dir+"cpufreq/scaling_governor", s.governor)
			w.file(dir+"cpufreq/scaling_available_governors", "performance powersave schedutil")
		}
	}
	s.network(w)
	w.defaultRoute(s.nic)
	for key, value := range map[string]string{
		"fs/file-max": "808284", "kernel/osrelease": "6.1.0-test", "kernel/sched_migration_cost_ns": "500000",
		"kernel/random/boot_id":              "11111111-2222-3333-4444-555555555555",
		"net/core/rps_sock_flow_entries":     "0",
		"net/core/rmem_max":                  "212992",
		"net/core/wmem_max":                  "212992",
		"net/ipv4/ip_local_port_range":       "32768\t60999",
		"net/ipv4/tcp_max_tw_buckets":        "262144",
		"net/ipv4/tcp_tw_reuse":              "2",
		"net/ipv4/tcp_fin_timeout":           "60",
		"net/ipv4/tcp_slow_start_after_idle": "1",
		"net/ipv4/tcp_rmem":                  "4096\t131072\t6291456",
		"net/ipv4/tcp_wmem":                  "4096\t16384\t4194304",
		"net/ipv4/tcp_no_metrics_save":       "0",
	} {
		w.file("proc/sys/"+key, value)
	}
	m := &Machine{Files: host.Tree(root)}
	if s.bare {
		for _, name := range []string{"kernel/sched_migration_cost_ns", "net/core/rps_sock_flow_entries", "net/ipv4/tcp_tw_reuse"} {
			if err := os.Remove(filepath.Join(root, "proc/sys", name)); err != nil {
				t.Fatal(err)
			}
		}
		return m, root
	}
	m.NICs = &fakeNICs{
		rings:    Rings{RX: 255, TX: 255, MaxRX: 4096, MaxTX: 4096},
		features: map[string]bool{"tx-tcp-segmentation": true, "rx-gro": false, "rx-lro": false},
	}
	return m, root
}

func (s shape) network(w writer) {
	device := "sys/devices/pci0000:00/0000:00:03.0/"
	pci := device
	if s.driver == "virtio_net" {
		device += "virtio3/"
	}
	w.link("sys/class/net/"+s.nic, "../../../"+device+"net/"+s.nic)
	nic := device + "net/" + s.nic + "/"
	w.link(nic+"device", "../../")
	w.file(nic+"mtu", s.mtu)
	for q := range s.rx {
		w.file(fmt.Sprintf("%squeues/rx-%d/rps_cpus", nic, q), s.mask)
		w.file(fmt.Sprintf("%squeues/rx-%d/rps_flow_cnt", nic, q), "0")
	}
	for q := range s.tx {
		if s.tx > 1 {
			w.file(fmt.Sprintf("%squeues/tx-%d/xps_cpus", nic, q), s.mask)
		} else {
			w.file(fmt.Sprintf("%squeues/tx-%d/tx_timeout", nic, q), "0")
		}
	}
	w.file(device+"numa_node", s.numa)
	w.link(device+"driver", "../../../bus/pci/drivers/"+s.driver)
	interrupts := "            CPU0       CPU1\n"
	for _, irq := range s.irqs {
		number, name, _ := strings.Cut(irq, " ")
		interrupts += fmt.Sprintf(" %s:    1   2  PCI-MSI 524288-edge      %s\n", number, name)
		w.file("proc/irq/"+number+"/smp_affinity_list", s.nodes[0])
		if !s.intx {
			w.file(pci+"msi_irqs/"+number, "msix")
		}
	}
	interrupts += "NMI:          0          0   Non-maskable interrupts\nERR:          0"
	w.file("proc/interrupts", interrupts)
}

type writer struct {
	t    testing.TB
	root string
}

func (w writer) path(name string) string {
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w writer) file(name, text string) {
	if err := os.WriteFile(w.path(name), []byte(text+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) link(name, to string) {
	if err := os.Symlink(to, w.path(name)); err != nil {
		w.t.Fatal(err)
	}
}

// defaultRoute is the table of routes, with the default one through the
// interface.
func (w writer) defaultRoute(nic string) {
	w.file("proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"+
		nic+"\t00000000\t0102030A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"+
		nic+"\t0002030A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0")
}

// snapshot is every file of the tree.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// fakeNICs is an ethtool of one interface.
type fakeNICs struct {
	rings    Rings
	features map[string]bool
}

func (f *fakeNICs) Rings(string) (Rings, error) { return f.rings, nil }

func (f *fakeNICs) SetRing(_, ring string, size int) error {
	if ring == "rx" {
		f.rings.RX = size
	} else {
		f.rings.TX = size
	}
	return nil
}

func (f *fakeNICs) Features(string) (map[string]bool, error) { return f.features, nil }

func (f *fakeNICs) SetFeature(_, feature string, on bool) error {
	f.features[feature] = on
	return nil
}
