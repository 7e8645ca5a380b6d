//go:build linux

package underlay

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/testutil/vmtest"
	"github.com/cnibench/cnibench/internal/tune"
)

func TestMain(m *testing.M) {
	if vm.IsInit() {
		vm.Init()
	}
	os.Exit(m.Run())
}

// TestSteeringInGuest joins two nodes by network devices of a guest with four CPUs, and says
// by the kernel's counts that frames cross these, that each setting moves work to the CPU or
// queue that it names, and that the next contender finds nothing of it.
func TestSteeringInGuest(t *testing.T) {
	if !vmtest.Inside(t, "virtio-net-pci", "virtio-net-pci", "e1000", "e1000") {
		return
	}
	t.Run("virtio_net", func(t *testing.T) {
		p := joinPair(t, "virtio_net")
		before := p.state()
		p.bindInterrupts(3)
		p.talk(1, 2)
		if got := p.counts(func() { p.talk(1, 2) }).interrupts; got[3] < some || got[0]+got[1]+got[2] > few {
			t.Errorf("interrupts bound to CPU 3 came to CPUs %v", got)
		}
		p.set("irq")
		p.talk(1, 2)
		if got := p.counts(func() { p.talk(1, 2) }).interrupts; got[0]+got[1] < some || got[2]+got[3] > few {
			t.Errorf("with irq, interrupts of two queues came to CPUs %v", got)
		}
		// The driver has CPUs 0 and 1 send through the first queue, the setting has them take turns.
		for cpu, queue := range []int{0, 0, 1, 1} {
			if got := p.counts(func() { p.talk(cpu, 2) }).sent; got[queue] < some || got[1-queue] > few {
				t.Errorf("CPU %d sent through queues %v times", cpu, got)
			}
		}
		p.set("xps")
		for cpu, queue := range []int{0, 1, 0, 1} {
			if got := p.counts(func() { p.talk(cpu, 2) }).sent; got[queue] < some || got[1-queue] > few {
				t.Errorf("with xps, CPU %d sent through queues %v times", cpu, got)
			}
		}
		p.remade(before)
	})
	t.Run("e1000", func(t *testing.T) {
		p := joinPair(t, "e1000")
		before := p.state()
		p.set("irq")
		p.talk(1, 2)
		got := p.counts(func() { p.talk(1, 2) })
		if got.interrupts[0] < some || got.interrupts[1]+got.interrupts[2]+got.interrupts[3] > few {
			t.Errorf("with irq, interrupts of one queue came to CPUs %v", got.interrupts)
		}
		if got.steered != [4]int{} {
			t.Errorf("without rps, CPUs were handed packets %v times", got.steered)
		}
		p.set("rps")
		got = p.counts(func() { p.talk(1, 2) })
		if got.steered[0] > few || got.steered[1]+got.steered[2]+got.steered[3] < some {
			t.Errorf("with rps, CPUs were handed packets %v times", got.steered)
		}
		p.set("rfs")
		p.talk(1, 2) // the table learns
		got = p.counts(func() { p.talk(1, 2) })
		if got.steered[0]+got.steered[3] > few || got.steered[1] < some || got.steered[2] < some {
			t.Errorf("with rfs and readers on CPUs 1 and 2, CPUs were handed packets %v times", got.steered)
		}
		p.set("rings") // takes the link down for a moment
		p.talk(1, 2)
		p.remade(before)
	})
}

const (
	packets = 300          // of each client, and back
	some    = packets / 5  // are handled at once, so that there are fewer interrupts
	few     = packets / 50 // are not of the conversation, or come before the kernel knows its CPUs
)

// pair are two nodes joined by devices of the driver.
type pair struct {
	*testing.T
	driver string
	nodes  []*wire.Node
	port   int // of the last conversation
}

func joinPair(t *testing.T, driver string) *pair {
	t.Helper()
	p := &pair{T: t, driver: driver, port: 7000}
	for i := range 2 {
		box, err := linux.NewNetNS(fmt.Sprintf("node%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 10, 0, byte(i + 2)}), 24)
		p.nodes = append(p.nodes, &wire.Node{Index: i, Name: box.Name, NS: box, Addr: addr})
	}
	if err := NICs(driver, p.nodes, Link{MTU: 1500}); err != nil {
		t.Fatal(err)
	}
	return p
}

// in calls fn inside each node with what package tune knows of it.
func (p *pair) in(fn func(node string, m *tune.Machine) error) {
	p.Helper()
	for _, n := range p.nodes {
		err := n.NS.Do(func() error {
			m, err := tune.ThisNamespace(true)
			if err != nil {
				return err
			}
			return fn(n.Name, m)
		})
		if err != nil {
			p.Fatalf("%s: %v", n.Name, err)
		}
	}
}

// set applies a setting in both nodes. The lines of the bus that are e1000's interrupts bear
// the same name in both, so that the first one binds all.
func (p *pair) set(name string) {
	p.Helper()
	made, left := 0, map[string]string{}
	p.in(func(_ string, m *tune.Machine) error {
		a, err := tune.SetNamespace(p.Context(), m, tune.Request{Settings: []tune.Choice{{Setting: name}}})
		made += a.Made
		maps.Copy(left, a.Left)
		return err
	})
	if made == 0 {
		p.Errorf("%s changed nothing: %v", name, left)
	}
}

// bindInterrupts lets the devices' interrupts go to one CPU.
func (p *pair) bindInterrupts(cpu int) {
	p.Helper()
	for _, irq := range p.irqs() {
		if err := os.WriteFile("/proc/irq/"+irq+"/smp_affinity_list", []byte(strconv.Itoa(cpu)), 0); err != nil {
			p.Fatal(err)
		}
	}
}

// irqs are the interrupts of the devices' queues.
func (p *pair) irqs() []string {
	p.Helper()
	var irqs []string
	for number := range p.interrupts() {
		irqs = append(irqs, number)
	}
	if len(irqs) == 0 {
		p.Fatal("the devices have no interrupts")
	}
	return irqs
}

// queueIRQ are the lines of a queue of virtio, and of e1000.
var queueIRQ = regexp.MustCompile(`^ *(\d+):((?: +\d+){4}) .*(-(?:in|out)put\.\d+| eth0)$`)

// interrupts are the counts of each interrupt by CPU.
func (p *pair) interrupts() map[string][4]int {
	p.Helper()
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		p.Fatal(err)
	}
	all := map[string][4]int{}
	for line := range strings.Lines(string(text)) {
		if m := queueIRQ.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && (p.driver == "e1000") == strings.HasSuffix(m[3], "eth0") {
			var byCPU [4]int
			for i, n := range strings.Fields(m[2]) {
				byCPU[i], _ = strconv.Atoi(n)
			}
			all[m[1]] = byCPU
		}
	}
	return all
}

// counts are what the kernel counts, by CPU or by queue.
type counts struct {
	interrupts [4]int // of both nodes' devices
	steered    [4]int // how often RPS or RFS handed packets to the CPU
	sent       [2]int // how often the client sent through the queue of virtio
}

// counts returns what was counted while fn ran, and fails if the frames did not cross the devices.
func (p *pair) counts(fn func()) counts {
	p.Helper()
	before, crossed := p.counted()
	fn()
	after, now := p.counted()
	for i := range now {
		if now[i]-crossed[i] < packets {
			p.Errorf("%s received %d frames of %d", p.nodes[i].Name, now[i]-crossed[i], packets)
		}
	}
	for cpu := range 4 {
		after.interrupts[cpu] -= before.interrupts[cpu]
		after.steered[cpu] -= before.steered[cpu]
	}
	for q := range after.sent {
		after.sent[q] -= before.sent[q]
	}
	return after
}

// sentStat is how often a transmit queue of virtio was told of packets.
var sentStat = regexp.MustCompile(`^tx_?(?:queue_)?([01])_kicks$`)

func (p *pair) counted() (c counts, crossed [2]int) {
	p.Helper()
	for _, byCPU := range p.interrupts() {
		for cpu, n := range byCPU {
			c.interrupts[cpu] += n
		}
	}
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// The tenth number is received_rps, the thirteenth the CPU (net/core/net-procfs.c).
		f := strings.Fields(line)
		cpu, _ := strconv.ParseInt(f[12], 16, 32)
		n, _ := strconv.ParseInt(f[9], 16, 32)
		c.steered[cpu] = int(n)
	}
	for i, n := range p.nodes {
		if err := n.OnUplink(func(_ *wire.Node, _ *netlink.Handle, link netlink.Link) error {
			crossed[i] = int(link.Attrs().Statistics.RxPackets)
			return nil
		}); err != nil {
			p.Fatal(err)
		}
	}
	err = p.nodes[0].NS.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		stats, err := e.Stats(wire.UplinkName)
		for name, n := range stats {
			if m := sentStat.FindStringSubmatch(name); m != nil {
				c.sent[m[1][0]-'0'] = int(n)
			}
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return c, crossed
}

// talk sends packets from one node to the other and back, one at a time, each side on a CPU.
func (p *pair) talk(clientCPU, serverCPU int) {
	p.Helper()
	p.port++
	addr := func(i int) *net.UDPAddr { return &net.UDPAddr{IP: p.nodes[i].Addr.Addr().AsSlice(), Port: p.port} }
	var ends [2]*net.UDPConn
	for i, n := range p.nodes {
		err := n.NS.Do(func() (err error) {
			// Connected, so that the kernel remembers the reader's CPU.
			ends[i], err = net.DialUDP("udp4", addr(i), addr(1-i))
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
		defer ends[i].Close()
		if err := ends[i].SetDeadline(time.Now().Add(time.Minute)); err != nil {
			p.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- onCPU(serverCPU, func() error { return echo(ends[1]) }) }()
	go func() { done <- onCPU(clientCPU, func() error { return ask(ends[0]) }) }()
	if err := errors.Join(<-done, <-done); err != nil {
		p.Fatal(err)
	}
}

func echo(c *net.UDPConn) error {
	buf := make([]byte, 64)
	for range packets {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

func ask(c *net.UDPConn) error {
	buf := make([]byte, 64)
	for range packets {
		if _, err := c.Write(buf); err != nil {
			return err
		}
		if _, err := c.Read(buf); err != nil {
			return err
		}
	}
	return nil
}

// onCPU calls fn in a thread bound to the CPU, which ends with it.
func onCPU(cpu int, fn func() error) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	return fn()
}

// state is what the settings change, of both nodes.
func (p *pair) state() map[string]string {
	p.Helper()
	all := map[string]string{}
	var masks []string // without the numbers of the interrupts, which may be others
	for _, irq := range p.irqs() {
		mask, err := os.ReadFile("/proc/irq/" + irq + "/smp_affinity_list")
		if err != nil {
			p.Fatal(err)
		}
		masks = append(masks, strings.TrimSpace(string(mask)))
	}
	slices.Sort(masks)
	all["interrupts"] = strings.Join(masks, " ")
	p.in(func(node string, m *tune.Machine) error {
		queues := "/sys/class/net/" + wire.UplinkName + "/queues"
		names, err := m.Files.ReadDir(queues)
		if err != nil {
			return err
		}
		for _, q := range names {
			for _, file := range []string{"rps_cpus", "rps_flow_cnt", "xps_cpus"} {
				if value, err := m.Files.ReadFile(queues + "/" + q + "/" + file); err == nil {
					all[node+" "+q+" "+file] = string(value)
				}
			}
		}
		table, err := m.Files.ReadFile("/proc/sys/net/core/rps_sock_flow_entries")
		if err != nil {
			return err
		}
		rings, err := m.NICs.Rings(wire.UplinkName)
		all["flows"], all[node+" rings"] = string(table), fmt.Sprint(rings)
		return err
	})
	return all
}

// remade gives the devices to new nodes, which find nothing of what was set.
func (p *pair) remade(before map[string]string) {
	p.Helper()
	if cmp.Equal(before, p.state()) {
		p.Error("nothing is seen of the settings")
	}
	for _, n := range p.nodes {
		if err := n.NS.Close(); err != nil {
			p.Fatal(err)
		}
	}
	again := joinPair(p.T, p.driver)
	if diff := cmp.Diff(before, again.state()); diff != "" {
		p.Errorf("settings outlive their nodes: %s", diff)
	}
	again.talk(1, 2)
}
