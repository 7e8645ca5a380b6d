package tune

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readFS reads a machine's files.
type readFS interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	Readlink(name string) (string, error)
}

// NIC is a network device: an interface that packets of other machines arrive on, or another
// device of the pods' path.
type NIC struct {
	Name   string
	Kind   string // of a device of the path; "" for an interface to tune
	Driver string // "" for a virtual interface
	Node   int    // NUMA node that it is attached to; -1 if unknown
	RX, TX int    // numbers of queues
	IRQs   []IRQ  // of its queues, ordered by queue and number; none for a virtual interface
}

// IRQ is an interrupt of a queue.
type IRQ struct {
	Number int
	Queue  int
}

const netClass = "/sys/class/net/"

// readNIC reads /sys/class/net and /proc/interrupts.
func readNIC(files readFS, name string) (NIC, error) {
	n := NIC{Name: name, Node: -1}
	queues, err := files.ReadDir(netClass + name + "/queues")
	if err != nil {
		return n, fmt.Errorf("interface %s: %w", name, err)
	}
	for _, q := range queues {
		switch {
		case strings.HasPrefix(q, "rx-"):
			n.RX++
		case strings.HasPrefix(q, "tx-"):
			n.TX++
		}
	}
	driver, err := files.Readlink(netClass + name + "/device/driver")
	if err != nil {
		return n, nil
	}
	n.Driver = path.Base(driver)
	if text, err := files.ReadFile(netClass + name + "/device/numa_node"); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			n.Node = node
		}
	}
	n.IRQs, err = readIRQs(files, n)
	return n, err
}

// readIRQs finds the interrupts of the interface's queues: those that the device owns, or
// if the machine does not say, those whose name has the interface's name in it.
func readIRQs(files readFS, n NIC) ([]IRQ, error) {
	text, err := files.ReadFile("/proc/interrupts")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	named, err := parseInterrupts(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("/proc/interrupts: %w", err)
	}
	nic, own := n.Name, ownIRQs(files, n)
	var irqs []IRQ
	bare := map[int]bool{} // named after the interface, not after a queue
	for number, name := range named {
		if len(own) > 0 && !own[number] || len(own) == 0 && !bears(name, nic) || notQueue.MatchString(name) {
			continue
		}
		irqs = append(irqs, IRQ{Number: number, Queue: queueOf(name, nic)})
		bare[number] = name == nic
	}
	// If a driver has an interrupt for each queue, it uses the bare one for itself.
	if slices.ContainsFunc(irqs, func(i IRQ) bool { return !bare[i.Number] }) {
		irqs = slices.DeleteFunc(irqs, func(i IRQ) bool { return bare[i.Number] })
	}
	slices.SortFunc(irqs, func(a, b IRQ) int {
		if a.Queue != b.Queue {
			return a.Queue - b.Queue
		}
		return a.Number - b.Number
	})
	return irqs, nil
}

// ownIRQs returns the numbers of the interrupts that the interface's device owns. Those of
// a virtio device belong to its PCI device.
func ownIRQs(files readFS, n NIC) map[int]bool {
	own := map[int]bool{}
	// The device is the folder above net/NIC.
	link, err := files.Readlink(netClass + n.Name)
	if err != nil {
		return own
	}
	device := path.Dir(path.Dir(path.Join(netClass, link)))
	if n.Driver == "virtio_net" {
		device = path.Dir(device)
	}
	numbers, _ := files.ReadDir(device + "/msi_irqs") // an error: the device has no MSI interrupts
	for _, number := range numbers {
		if irq, err := strconv.Atoi(number); err == nil {
			own[irq] = true
		}
	}
	return own
}

// notQueue matches a device's interrupts for its own housekeeping.
var notQueue = regexp.MustCompile(`(?i)config|ctrl|control|mbx|event|async|misc|mgmnt|other|aeq|cmd|health|lsc|stats|pages`)

// bears reports whether an interrupt's name is the interface's name or built from it.
func bears(name, nic string) bool {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ' ' || r == ',' }) {
		if word == nic || strings.HasPrefix(word, nic+"-") || strings.Contains(word, "-"+nic+"-") {
			return true
		}
	}
	return false
}

var lastNumber = regexp.MustCompile(`(\d+)$`)

// queueOf returns the queue's number at the end of an interrupt's name, such as
// eth0-TxRx-1, virtio3-input.0 or mlx5_comp7@pci:0000:3b:00.0.
func queueOf(name, nic string) int {
	name, _, _ = strings.Cut(name, "@")
	if name == nic || strings.HasSuffix(name, " "+nic) {
		return 0
	}
	queue, _ := strconv.Atoi(lastNumber.FindString(name)) // without a number it is queue 0
	return queue
}

// parseInterrupts reads /proc/interrupts and returns the name of every numbered interrupt.
// The name comes after the counts, the chip and the trigger.
func parseInterrupts(r io.Reader) (map[int]string, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20) // a line has a count for every CPU
	named := map[int]string{}
	cpus := 0
	for first := true; s.Scan(); first = false {
		fields := strings.Fields(s.Text())
		if first {
			cpus = len(fields)
			continue
		}
		if len(fields) < cpus+2 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":"))
		if err != nil || number < 0 {
			continue // NMI, LOC and similar
		}
		name := fields[len(fields)-1:]
		if len(fields) > cpus+4 {
			name = fields[cpus+3:]
		}
		// On x86 the trigger is part of the hardware's number, "524288-edge"; on ARM it is a
		// word of its own.
		if len(name) > 1 && (name[0] == "Edge" || name[0] == "Level") {
			name = name[1:]
		}
		named[number] = strings.Join(name, " ")
	}
	return named, s.Err()
}

// defaultNIC reads /proc/net/route and returns the interface of IPv4's default route, or "".
func defaultNIC(r io.Reader) (string, error) {
	return bestNIC(r, func(f []string) (nic, metric string, ok bool) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask …
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			return "", "", false
		}
		return f[0], f[6], true
	}, 10)
}

// defaultNIC6 reads /proc/net/ipv6_route and returns the interface of IPv6's default route,
// or "". The file's numbers are hexadecimal.
func defaultNIC6(r io.Reader) (string, error) {
	const zero = "00000000000000000000000000000000"
	return bestNIC(r, func(f []string) (nic, metric string, ok bool) {
		// Destination Length Source Length Next-hop Metric RefCnt Use Flags Iface;
		// the loopback has a default route that rejects packets without another route.
		if len(f) < 10 || f[0] != zero || f[1] != "00" || f[9] == "lo" {
			return "", "", false
		}
		return f[9], f[5], true
	}, 16)
}

// bestNIC returns the interface of the default route with the smallest metric.
func bestNIC(r io.Reader, route func(fields []string) (nic, metric string, ok bool), base int) (string, error) {
	s := bufio.NewScanner(r)
	best, lowest := "", uint64(math.MaxUint64)
	for s.Scan() {
		nic, text, ok := route(strings.Fields(s.Text()))
		metric, err := strconv.ParseUint(text, base, 32)
		if ok && err == nil && metric < lowest {
			best, lowest = nic, metric
		}
	}
	return best, s.Err()
}
