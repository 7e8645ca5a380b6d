package fingerprint

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// machine sets virt.*, memory.*, transparent_hugepage and clocksource.
func (c *collector) machine() {
	c.virtualisation()
	if total, ok := parse(c, "proc/meminfo", parseMemTotal); ok {
		c.set("memory.total", total.String())
	}
	c.set("transparent_hugepage", parseChoice(c.read("sys/kernel/mm/transparent_hugepage/enabled")))
	c.set("clocksource", c.read(clockDir+"current_clocksource"))
}

const clockDir = "sys/devices/system/clocksource/clocksource0/"

// hypervisorClocks lists clocks that only guests of a hypervisor have.
var hypervisorClocks = []struct{ clock, hypervisor string }{
	{"kvm-clock", "KVM"},
	{"hyperv_clocksource_tsc_page", "Hyper-V"},
	{"hyperv_clocksource_msr", "Hyper-V"},
	{"xen", "Xen"},
}

// virtualisation sets virt.hypervisor ("none" on an x86 machine without one)
// and, in a guest, virt.product: the DMI vendor and product of the virtual
// machine, never its serial number or UUID.
func (c *collector) virtualisation() {
	product := strings.TrimSpace(c.read("sys/class/dmi/id/sys_vendor") + " " + c.read("sys/class/dmi/id/product_name"))
	info, _ := parse(c, "proc/cpuinfo", parseCPUInfo)
	hypervisor := c.read("sys/hypervisor/type")
	if hypervisor == "" {
		clocks := strings.Fields(c.read(clockDir + "available_clocksource"))
		for _, h := range hypervisorClocks {
			if slices.Contains(clocks, h.clock) {
				hypervisor = h.hypervisor
				break
			}
		}
	}
	flagged := slices.Contains(info.flags, "hypervisor")
	switch {
	case hypervisor != "":
	case flagged:
		hypervisor = "unnamed"
	case len(info.flags) > 0:
		c.set("virt.hypervisor", "none")
		return
	case strings.Contains(product, "KVM"), strings.Contains(product, "QEMU"), strings.Contains(product, "Virtual Machine"):
		// Arm CPUs have no flag for a hypervisor.
		hypervisor = "unnamed"
	default:
		return
	}
	c.set("virt.hypervisor", hypervisor)
	c.set("virt.product", product)
}

// parseMemTotal reads the memory that the kernel manages from /proc/meminfo.
func parseMemTotal(r io.Reader) (unit.Bytes, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, err := strconv.ParseUint(f[1], 10, 53)
			return unit.Bytes(kib) * 1024, err
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("no MemTotal in kB")
}

// parseChoice returns the chosen word of a text such as "always [madvise] never".
func parseChoice(choices string) string {
	_, rest, _ := strings.Cut(choices, "[")
	chosen, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return chosen
}
