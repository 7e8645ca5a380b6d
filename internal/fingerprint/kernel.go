package fingerprint

import (
	"bufio"
	"compress/gzip"
	"io"
	"regexp"
	"slices"
	"strings"
)

// kernel sets kernel.release, kernel.version (without its builder), kernel.cmdline and
// kernel.config.*.
func (c *collector) kernel() {
	release := c.read("proc/sys/kernel/osrelease")
	c.set("kernel.release", release)
	c.set("kernel.version", c.read("proc/sys/kernel/version"))
	c.set("kernel.cmdline", commandLine(c.read("proc/cmdline")))
	config, ok := parse(c, "proc/config.gz", withGunzip(parseConfig))
	for _, name := range []string{"boot/config-" + release, "lib/modules/" + release + "/config"} {
		if !ok && release != "" {
			config, ok = parse(c, name, parseConfig)
		}
	}
	for option, value := range config {
		c.set("kernel.config."+option, value)
	}
}

func withGunzip[T any](parser func(io.Reader) (T, error)) func(io.Reader) (T, error) {
	return func(r io.Reader) (value T, err error) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return value, err
		}
		return parser(z)
	}
}

// configOptions lists the options that affect a latency or CPU figure: timer tick, preemption,
// accounting of CPU time, receive steering, mitigations (under their names before and after
// Linux 6.9).
var configOptions = regexp.MustCompile(`^(HZ|HZ_PERIODIC|NO_HZ.*|HIGH_RES_TIMERS` +
	`|PREEMPT(ION|_NONE|_VOLUNTARY|_LAZY|_DYNAMIC|_RT|_BUILD)?` +
	`|IRQ_TIME_ACCOUNTING|VIRT_CPU_ACCOUNTING_GEN|TICK_CPU_ACCOUNTING` +
	`|RPS|XPS|BQL|NET_RX_BUSY_POLL|BPF_JIT_ALWAYS_ON` +
	`|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|MITIGATION_.*|RETPOLINE|RETHUNK|PAGE_TABLE_ISOLATION|SLS)$`)

// parseConfig parses a kernel's .config and returns the configOptions, without CONFIG_; the
// value of an option that is not set is "n".
func parseConfig(r io.Reader) (map[string]string, error) {
	options := map[string]string{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# CONFIG_"); ok {
			if line, ok = strings.CutSuffix(rest, " is not set"); !ok {
				continue
			}
			line += "=n"
		} else if line, ok = strings.CutPrefix(line, "CONFIG_"); !ok {
			continue
		}
		if option, value, ok := strings.Cut(line, "="); ok && configOptions.MatchString(option) {
			options[option] = value
		}
	}
	return options, lines.Err()
}

// telling lists the parameters of the kernel command line whose values are published: they
// affect timing, CPUs, memory or mitigations. A name that ends in "." or "_" stands for all
// parameters that begin with it.
var telling = []string{
	"mitigations", "spectre_", "spec_", "nospectre_", "nopti", "pti", "l1tf", "mds", "tsx", "tsx_", "mmio_stale_data", "retbleed",
	"srbds", "gather_data_sampling", "reg_file_data_sampling", "indirect_target_selection", "tsa", "vmscape",
	"isolcpus", "nohz", "nohz_", "rcu_", "rcutree.", "rcupdate.", "irqaffinity", "preempt", "threadirqs", "skew_tick",
	"nosmt", "maxcpus", "nr_cpus", "idle", "cpuidle.", "cpuidle_haltpoll.", "haltpoll.", "intel_", "amd_", "processor.", "cpufreq.",
	"clocksource", "tsc", "highres", "hpet",
	"transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz", "numa", "numa_balancing",
	"iommu", "iommu.", "swiotlb", "pcie_aspm", "nmi_watchdog", "nowatchdog",
	"audit", "selinux", "apparmor", "lsm", "security", "psi", "cgroup_", "systemd.unified_cgroup_hierarchy",
	"ipv6.", "kvm.", "kvm_",
}

var (
	// plainValue matches values that cannot name anybody, whatever the parameter.
	plainValue = regexp.MustCompile(`^([0-9]{1,8}[kKmMgG]?|on|off|y|n|yes|no|auto)$`)
	parameter  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
)

// commandLine returns the kernel's command line without the arguments of init (after "--"). It
// replaces every value that is neither telling nor plain by "…", because root devices,
// addresses, host names and keys stand there too.
func commandLine(line string) string {
	var kept []string
	for _, word := range splitQuoted(line) {
		if word == "--" {
			break
		}
		name, value, hasValue := strings.Cut(word, "=")
		switch {
		case !parameter.MatchString(name):
			continue
		case hasValue && !plainValue.MatchString(value) && !isTelling(name):
			word = name + "=…"
		}
		kept = append(kept, word)
	}
	return strings.Join(kept, " ")
}

func isTelling(name string) bool {
	return slices.ContainsFunc(telling, func(t string) bool {
		if strings.HasSuffix(t, ".") || strings.HasSuffix(t, "_") {
			return strings.HasPrefix(name, t)
		}
		return name == t
	})
}

// splitQuoted splits at spaces outside double quotes, as the kernel does (lib/cmdline.c,
// next_arg).
func splitQuoted(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == '\n')
	})
}
