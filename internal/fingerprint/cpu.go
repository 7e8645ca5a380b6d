package fingerprint

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/linux"
)

const cpuDir = "sys/devices/system/cpu/"

// maxNodes bounds the number of a NUMA node: the kernel has at most 1,024 nodes.
const maxNodes = 1 << 10

// cpu sets cpu.*: the model, the online CPUs, the topology, the frequencies, and the
// mitigations of vulnerabilities.
func (c *collector) cpu() {
	info, ok := parse(c, "proc/cpuinfo", parseCPUInfo)
	if ok {
		c.set("cpu.model", info.model)
		c.set("cpu.signature", info.signature)
		c.set("cpu.microcode", info.microcode)
	}
	c.set("cpu.online", c.read(cpuDir+"online"))
	if nodes, err := linux.ParseCPUs(c.read("sys/devices/system/node/online"), maxNodes); err == nil && len(nodes) > 0 {
		c.set("cpu.numa_nodes", strconv.Itoa(len(nodes)))
	}
	// A kernel that does not know the sockets says -1.
	packages := slices.DeleteFunc(c.distinct(cpuDir+"cpu[0-9]*/topology/physical_package_id"),
		func(id string) bool { return strings.HasPrefix(id, "-") })
	if len(packages) > 0 {
		c.set("cpu.sockets", strconv.Itoa(len(packages)))
	}
	c.set("cpu.smt", onOff(c.read(cpuDir+"smt/active")))
	c.set("cpu.governor", strings.Join(c.distinct(cpuDir+"cpu[0-9]*/cpufreq/scaling_governor"), ", "))
	c.set("cpu.turbo", c.turbo())
	c.set("cpu.frequency", c.frequency(info.mhz))
	c.set("cpu.vulnerabilities", c.vulnerabilities())
}

// turbo returns whether the CPU may exceed its nominal frequency.
func (c *collector) turbo() string {
	switch c.read(cpuDir + "intel_pstate/no_turbo") {
	case "0":
		return "on"
	case "1":
		return "off"
	}
	return onOff(c.read(cpuDir + "cpufreq/boost"))
}

// frequency returns the range from which the governor may choose. If the frequency is fixed, it
// returns the one that the kernel found at boot.
func (c *collector) frequency(constantMHz float64) string {
	lowest, highest := math.Inf(1), 0.0
	for _, khz := range c.distinct(cpuDir + "cpu[0-9]*/cpufreq/scaling_m[ia][nx]_freq") {
		if v, err := strconv.ParseUint(khz, 10, 64); err == nil {
			lowest, highest = min(lowest, float64(v)/1e3), max(highest, float64(v)/1e3)
		}
	}
	switch {
	case highest > lowest:
		return fmt.Sprintf("%.0f-%.0f MHz", lowest, highest)
	case highest > 0:
		return fmt.Sprintf("%.0f MHz", highest)
	case constantMHz > 0:
		return fmt.Sprintf("%.0f MHz", constantMHz)
	}
	return ""
}

// vulnerabilities returns the CPU's vulnerabilities, each with the first clause of its
// mitigation.
func (c *collector) vulnerabilities() string {
	names, _ := fs.Glob(c.root, cpuDir+"vulnerabilities/*")
	var list []string
	for _, name := range names {
		state := c.read(name)
		if state == "" || strings.HasPrefix(state, "Not affected") {
			continue
		}
		if what, ok := strings.CutPrefix(state, "Mitigation: "); ok {
			state = what
		}
		state, _, _ = strings.Cut(state, ";")
		list = append(list, path.Base(name)+": "+strings.TrimSpace(state))
	}
	return strings.Join(list, "; ")
}

// cpuInfo holds the values of the first CPU in /proc/cpuinfo.
type cpuInfo struct {
	model     string // "AMD EPYC 7763 64-Core Processor"; on Arm the implementer and part
	signature string // on x86 "family 25 model 17 stepping 1", since a guest's model name can be vague
	microcode string
	mhz       float64 // current value; it changes if the CPU scales
	flags     []string
}

// parseCPUInfo reads the first CPU of /proc/cpuinfo.
func parseCPUInfo(r io.Reader) (cpuInfo, error) {
	field := map[string]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // lines with flags are long
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			if len(field) > 0 {
				break
			}
			continue
		}
		field[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	info := cpuInfo{
		model:     field["model name"],
		microcode: field["microcode"],
		flags:     strings.Fields(field["flags"]),
	}
	if part := field["CPU part"]; part != "" {
		info.model = cmp.Or(info.model, fmt.Sprintf("Arm implementer %s part %s", field["CPU implementer"], part))
	}
	if family := field["cpu family"]; family != "" {
		info.signature = fmt.Sprintf("family %s model %s stepping %s", family, field["model"], field["stepping"])
	}
	if mhz, err := strconv.ParseFloat(field["cpu MHz"], 64); err == nil && mhz > 0 && mhz < 1e6 {
		info.mhz = mhz
	}
	return info, lines.Err()
}
