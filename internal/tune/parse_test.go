package tune

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMask(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		like string
		want string
	}{
		{[]int{0, 1}, "0", "3"},
		{[]int{1}, "00", "02"},
		{[]int{35}, "0,00000000", "8,00000000"},
		{[]int{0, 63}, "00000000,00000000", "80000000,00000001"},
		{[]int{40}, "0", "00000100,00000000"},
		{nil, "00000000", "00000000"},
	} {
		if got := FormatMask(c.cpus, c.like); got != c.want {
			t.Errorf("%v like %s: %s, want %s", c.cpus, c.like, got, c.want)
		}
	}
	m := mask("x")
	if !m.Same("00000000,0003fdfe", "3fdfe") || m.Same("1", "2") || !m.Same("0", "00000000") {
		t.Error("masks are told apart wrongly")
	}
}

// Interrupts of drivers as their machines list them.
func TestInterrupts(t *testing.T) {
	const text = `            CPU0       CPU1
  8:          0          1   IO-APIC    8-edge      rtc0
 18:          0          0   IO-APIC   18-fasteoi   ehci_hcd:usb1, eth0
 41:      31974          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
 72:          5          9   PCI-MSI 1572868-edge      i40e-eth0-TxRx-3
 80:          5          9   xen-pirq-msi-x   eth0-TxRx-1
211:          0          7   ITS-MSI 524289 Edge      mlx5_comp1@pci:0002:01:00.0
NMI:          0          0   Non-maskable interrupts
ERR:          0`
	named, err := parseInterrupts(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var own []int
	for number, name := range named {
		if bears(name, "eth0") {
			own = append(own, number)
		}
	}
	slices.Sort(own)
	if diff := cmp.Diff([]int{18, 72, 80}, own); diff != "" {
		t.Errorf("%v: %s", named, diff)
	}
	for number, queue := range map[int]int{18: 0, 41: 0, 72: 3, 80: 1, 211: 1} {
		if got := queueOf(named[number], "eth0"); got != queue {
			t.Errorf("%d, %q: queue %d, want %d", number, named[number], got, queue)
		}
	}
}

func TestNotrackRules(t *testing.T) {
	rules := notrackRules([]int{80, 5001, 5002, 5003})
	if got, err := parseNotrack(rules); err != nil || got != "80,5001-5003" {
		t.Errorf("%q, %v", got, err)
	}
	// As nft lists a set of one.
	if got, err := parseNotrack("\t\tmeta l4proto { 6, 17 } th dport 80 notrack\n"); err != nil || got != "80" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := parseNotrack("chain prerouting { }"); err == nil {
		t.Error("somebody else's rules were read")
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct{ value, now, want string }{
		{"* * 268435456", "4096\t131072\t6291456", "4096 131072 268435456"},
		{"* * 268435456", "4096 131072 536870912", "4096 131072 536870912"},
	} {
		if got, err := (key{"k", c.value, true}).target(c.now); got != c.want || err != nil {
			t.Errorf("%s on %s: %s, %v", c.value, c.now, got, err)
		}
	}
	if _, err := (key{"k", "1", false}).target("1 2"); err == nil {
		t.Error("a value of another shape was accepted")
	}
}

func FuzzParseInterrupts(f *testing.F) {
	f.Add("  CPU0\n 1: 2 chip 1-edge eth0\n")
	f.Fuzz(func(_ *testing.T, text string) {
		named, _ := parseInterrupts(strings.NewReader(text))
		for _, name := range named {
			queueOf(name, "eth0")
		}
	})
}

func FuzzParseNotrack(f *testing.F) {
	f.Add(notrackRules([]int{80}))
	f.Fuzz(func(t *testing.T, text string) {
		if ports, err := parseNotrack(text); err == nil {
			if again, err := parseNotrack(notrackRules(must(parsePorts(ports)))); err != nil || again != ports {
				t.Errorf("%q: %q, %v", ports, again, err)
			}
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzJournal(f *testing.F) {
	f.Add(`{"schema":"cnibench/tune-journal/1","boot":"b","n":0}` + "\n" + `{"step":"intent","n":0,"change":{"setting":"s","kind":"file","name":"/x","from":"1","to":"2"}}` + "\n")
	f.Fuzz(func(_ *testing.T, text string) {
		j := &Journal{}
		_ = j.parse(strings.NewReader(text)) // must not panic
	})
}
