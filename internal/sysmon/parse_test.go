package sysmon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
)

// parsers are all of them, each with the file that it reads below a root.
var parsers = map[string]struct {
	file  string
	parse func(io.Reader, *frame) error
}{
	"cpu":        {"stat", parseStat},
	"memory":     {"meminfo", parseMeminfo},
	"network":    {"net/dev", parseNetDev},
	"tcpudp":     {"net/snmp", sampleText(tcpudp(), "net/snmp")},
	"tcpext":     {"net/netstat", sampleText(tcpext(), "net/netstat")},
	"softnet":    {"net/softnet_stat", parseSoftnet},
	"self":       {"self/statm", parseStatm},
	"disk":       {"diskstats", parseDiskstats},
	"softirqs":   {"softirqs", sampleText(softirqs(), "softirqs")},
	"interrupts": {"interrupts", sampleText(interrupts(), "interrupts")},
	"pressure":   {"pressure/io", func(r io.Reader, out *frame) error { return parsePressure(r, "io", out) }},
	"conntrack": {"sys/net/netfilter/nf_conntrack_max", func(r io.Reader, out *frame) error {
		return parseNumber(r, "node_nf_conntrack_entries", 1, out)
	}},
}

// sampleText returns a sampler's parser where it is made with the sampler.
func sampleText(s Sampler, file string) func(io.Reader, *frame) error {
	return func(r io.Reader, out *frame) error {
		return s.sample(Root{Proc: oneFile{file, r}}, out)
	}
}

type oneFile struct {
	name string
	r    io.Reader
}

func (f oneFile) Open(name string) (fs.File, error) {
	if name != f.name {
		return nil, fs.ErrNotExist
	}
	return f, nil
}
func (f oneFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
func (f oneFile) Read(p []byte) (int, error) { return f.r.Read(p) }
func (f oneFile) Close() error               { return nil }

func parseFile(t *testing.T, sampler, root string) map[string]float64 {
	t.Helper()
	p := parsers[sampler]
	file, err := os.Open(root + "/" + p.file)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out frame
	if err := p.parse(file, &out); err != nil {
		t.Fatalf("%s: %v", p.file, err)
	}
	return asMap(t, out)
}

// asMap returns the rows as "metric,label,label" → value.
func asMap(t *testing.T, out frame) map[string]float64 {
	t.Helper()
	m := make(map[string]float64, len(out.rows))
	for _, r := range out.rows {
		key := strings.TrimRight(strings.Join([]string{r.key.metric, r.key.labels[0], r.key.labels[1]}, ","), ",")
		if _, twice := m[key]; twice {
			t.Errorf("%s twice", key)
		}
		m[key] = r.value
	}
	return m
}

// TestParseRecorded compares our parsers with procfs over files recorded from
// a machine with Linux 6.18.
func TestParseRecorded(t *testing.T) {
	proc, err := procfs.NewFS("testdata/proc")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("cpu", func(t *testing.T) {
		stat, err := proc.Stat()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			"node_context_switches": float64(stat.ContextSwitches),
			"node_intr":             float64(stat.IRQTotal),
		}
		for cpu, s := range stat.CPU {
			for mode, v := range map[string]float64{"user": s.User, "nice": s.Nice, "system": s.System, "idle": s.Idle,
				"iowait": s.Iowait, "irq": s.IRQ, "softirq": s.SoftIRQ, "steal": s.Steal} {
				want[fmt.Sprintf("node_cpu_seconds,%d,%s", cpu, mode)] = v
			}
		}
		if diff := cmp.Diff(want, parseFile(t, "cpu", "testdata/proc")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("memory", func(t *testing.T) {
		m, err := proc.Meminfo()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			"node_memory_MemTotal_bytes":     float64(*m.MemTotalBytes),
			"node_memory_MemFree_bytes":      float64(*m.MemFreeBytes),
			"node_memory_MemAvailable_bytes": float64(*m.MemAvailableBytes),
			"node_memory_Buffers_bytes":      float64(*m.BuffersBytes),
			"node_memory_Cached_bytes":       float64(*m.CachedBytes),
			"node_memory_SReclaimable_bytes": float64(*m.SReclaimableBytes),
			"node_memory_used_bytes":         float64(*m.MemTotalBytes - *m.MemFreeBytes - *m.BuffersBytes - *m.CachedBytes - *m.SReclaimableBytes),
		}
		if diff := cmp.Diff(want, parseFile(t, "memory", "testdata/proc")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("network", func(t *testing.T) {
		dev, err := proc.NetDev()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for name, d := range dev {
			want["node_network_receive_bytes,"+name] = float64(d.RxBytes)
			want["node_network_receive_packets,"+name] = float64(d.RxPackets)
			want["node_network_receive_errs,"+name] = float64(d.RxErrors)
			want["node_network_receive_drop,"+name] = float64(d.RxDropped)
			want["node_network_transmit_bytes,"+name] = float64(d.TxBytes)
			want["node_network_transmit_packets,"+name] = float64(d.TxPackets)
			want["node_network_transmit_errs,"+name] = float64(d.TxErrors)
			want["node_network_transmit_drop,"+name] = float64(d.TxDropped)
		}
		if diff := cmp.Diff(want, parseFile(t, "network", "testdata/proc")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("softnet", func(t *testing.T) {
		cpus, err := proc.NetSoftnetStat()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for _, c := range cpus {
			want[fmt.Sprint("node_softnet_processed,", c.Index)] = float64(c.Processed)
			want[fmt.Sprint("node_softnet_dropped,", c.Index)] = float64(c.Dropped)
			want[fmt.Sprint("node_softnet_times_squeezed,", c.Index)] = float64(c.TimeSqueezed)
		}
		if diff := cmp.Diff(want, parseFile(t, "softnet", "testdata/proc")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestParseProtocols checks a file in which every counter has a value of its
// own: the one of its position.
func TestParseProtocols(t *testing.T) {
	for _, tt := range []struct {
		sampler  string
		counters []protocolCounter
	}{{"tcpudp", snmpCounters}, {"tcpext", tcpextCounters}} {
		t.Run(tt.sampler, func(t *testing.T) {
			got := parseFile(t, tt.sampler, "testdata/proc")
			if len(got) != len(tt.counters) {
				t.Errorf("%d counters of %d: %v", len(got), len(tt.counters), got)
			}
			recorded, err := os.ReadFile("testdata/proc/" + parsers[tt.sampler].file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(recorded)), "\n")
			var numbered strings.Builder
			want := map[string]float64{}
			for i := 0; i < len(lines); i += 2 {
				names := strings.Fields(lines[i])
				numbered.WriteString(lines[i] + "\n" + names[0])
				for j, name := range names[1:] {
					n := 1000*i + j
					fmt.Fprintf(&numbered, " %d", n)
					for _, c := range tt.counters {
						if c.protocol+":" == names[0] && c.name == name {
							want["node_netstat_"+c.protocol+"_"+c.name] = float64(n)
						}
					}
				}
				numbered.WriteString("\n")
			}
			var out frame
			if err := parsers[tt.sampler].parse(strings.NewReader(numbered.String()), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, asMap(t, out)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestParseOld36 reads a machine with 36 CPUs and an old kernel: no steal, no
// MemAvailable and SReclaimable, short softnet lines, an intr line of 80 kB.
func TestParseOld36(t *testing.T) {
	const root = "testdata/old36"
	cpu := parseFile(t, "cpu", root)
	if want := 36*7 + 2; len(cpu) != want {
		t.Errorf("%d values of CPUs, want %d", len(cpu), want)
	}
	if _, there := cpu["node_cpu_seconds,0,steal"]; there {
		t.Error("steal has a value, and the kernel gave none")
	}
	if got := cpu["node_context_switches"]; got != 98765432109 {
		t.Errorf("context switches %v", got)
	}
	mem := parseFile(t, "memory", root)
	if _, there := mem["node_memory_used_bytes"]; there || len(mem) != 4 {
		t.Errorf("memory without SReclaimable: %v", mem)
	}
	soft := parseFile(t, "softnet", root)
	if _, there := soft["node_softnet_processed,35"]; !there || len(soft) != 36*3 {
		t.Errorf("softnet of 36 CPUs: %d values", len(soft))
	}
	net := parseFile(t, "network", root)
	want := map[string]float64{
		"node_network_receive_bytes,lo": 12345678901, "node_network_receive_packets,lo": 456789,
		"node_network_receive_errs,lo": 0, "node_network_receive_drop,lo": 0,
		"node_network_transmit_bytes,lo": 12345678901, "node_network_transmit_packets,lo": 456789,
		"node_network_transmit_errs,lo": 0, "node_network_transmit_drop,lo": 0,
		"node_network_receive_bytes,eth0": 18446744073709551615, "node_network_receive_packets,eth0": 4294967296,
		"node_network_receive_errs,eth0": 1, "node_network_receive_drop,eth0": 2,
		"node_network_transmit_bytes,eth0": 7, "node_network_transmit_packets,eth0": 8,
		"node_network_transmit_errs,eth0": 9, "node_network_transmit_drop,eth0": 10,
		"node_network_receive_bytes,eth0.100": 1, "node_network_receive_packets,eth0.100": 2,
		"node_network_receive_errs,eth0.100": 3, "node_network_receive_drop,eth0.100": 4,
		"node_network_transmit_bytes,eth0.100": 9, "node_network_transmit_packets,eth0.100": 10,
		"node_network_transmit_errs,eth0.100": 11, "node_network_transmit_drop,eth0.100": 12,
	}
	if diff := cmp.Diff(want, net); diff != "" {
		t.Error(diff)
	}
}

func TestParseErrors(t *testing.T) {
	const headings = "a\nb\n"
	for _, tt := range []struct{ name, sampler, text, want string }{
		{"no CPU", "cpu", "ctxt 5\n", "no line of a CPU"},
		{"CPU without columns", "cpu", "cpu0\n", "cpu0: no columns"},
		{"CPU with words", "cpu", "cpu0 1 x\n", `cpu0: strconv.ParseUint: parsing "x"`},
		{"CPU of a word", "cpu", "cpus 1\n", "CPU number"},
		{"empty intr", "cpu", "intr\n", "intr: no number"},
		{"no total", "memory", "MemFree: 5 kB\n", "no MemTotal"},
		{"other unit", "memory", "MemTotal: 5 MB\n", "MemTotal"},
		{"no unit", "memory", "MemTotal: 5\n", `"5" is not in kB`},
		{"no headings", "network", "a\n", "no headings"},
		{"no colon", "network", headings + "eth0 1 2\n", "without a colon"},
		{"cut off", "network", headings + "eth0: 1 2 3\n", "eth0: 3 columns"},
		{"negative", "network", headings + "eth0: -1 2 3\n", `eth0: strconv.ParseUint: parsing "-1"`},
		{"empty", "tcpudp", "", "empty"},
		{"names only", "tcpudp", "Tcp: InSegs\n", `followed by values of ""`},
		{"too few values", "tcpudp", "Tcp: InSegs OutSegs\nTcp: 1\n", "differ in number"},
		{"too many values", "tcpudp", "Tcp: InSegs\nTcp: 1 2\n", "differ in number"},
		{"word", "tcpext", "TcpExt: TCPTimeouts\nTcpExt: many\n", "TCPTimeouts"},
		{"no line", "softnet", "", "empty"},
		{"short line", "softnet", "1 2\n", "line 1: 2 columns"},
		{"not hexadecimal", "softnet", "1 2 g\n", "line 1"},
		{"no numbers", "self", "\n", "self/statm"},
		{"short line", "disk", "8 0 sda 1 2\n", "5 columns"},
		{"word", "disk", "8 0 sda 1 2 3 x 5 6 7 8 9 10 11\n", `sda: strconv.ParseUint: parsing "x"`},
		{"no CPUs", "softirqs", "\n", "no line of CPUs"},
		{"not a CPU", "softirqs", "CPUx\n", "CPU number"},
		{"no colon", "interrupts", "CPU0\nLOC 5\n", "without a colon"},
		{"no total", "pressure", "some avg10=0\n", "has no total"},
		{"total of a word", "pressure", "some total=x\n", `parsing "x"`},
		{"other lines", "pressure", "none total=5\n", "no line that is known"},
		{"word", "conntrack", "many\n", `parsing "many"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out frame
			err := parsers[tt.sampler].parse(strings.NewReader(tt.text), &out)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// FuzzParse gives every parser every text: none may panic, and what one gives
// fits the sampler's description.
func FuzzParse(f *testing.F) {
	names := make([]string, 0, len(parsers))
	for name, p := range parsers {
		names = append(names, name)
		recorded, err := os.ReadFile("testdata/proc/" + p.file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(recorded)
	}
	f.Add([]byte("cpu0 1 2 3\nintr 5 6\nctxt 7\n"))
	sort.Strings(names)
	described := map[string]Metric{}
	for _, s := range All() {
		for _, m := range s.Metrics {
			described[m.Name] = m
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range names {
			var out frame
			if err := parsers[name].parse(strings.NewReader(string(b)), &out); err != nil {
				continue
			}
			for _, r := range out.rows {
				m, ok := described[r.key.metric]
				if !ok {
					t.Fatalf("%s gave %s, which it does not describe", name, r.key.metric)
				}
				if r.value != r.value {
					t.Fatalf("%s: not a number", r.key.metric)
				}
				if m.Type == "counter" && r.value < 0 {
					t.Fatalf("%s: counter %v", r.key.metric, r.value)
				}
			}
		}
	})
}

// FuzzCountersOfPods gives the parsers of cpu.stat and of conntrack's table every text: none
// may panic, and no row is of another metric.
func FuzzCountersOfPods(f *testing.F) {
	f.Add("usage_usec 1\nnr_periods 5\nnr_throttled 2\nthrottled_usec 900\n")
	f.Add("nr_periods 5\nnr_throttled 2\nthrottled_time 900000\n")
	f.Add("entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error expect_new expect_create expect_delete search_restart\n0000002a 0 0 0 00000003 0 0 0 0 00000001 00000002 00000004 0 0 0 0 0\n")
	known := map[string]bool{}
	for _, s := range []Sampler{cgroup(), conntrackStat()} {
		for _, m := range s.Metrics {
			known[m.Name] = true
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(io.Reader, *frame) error{parseCPUStat, parseConntrackStat} {
			var out frame
			if parse(strings.NewReader(text), &out) != nil {
				continue
			}
			for _, r := range out.rows {
				if !known[r.key.metric] {
					t.Fatalf("a row of %s", r.key.metric)
				}
			}
		}
	})
}
