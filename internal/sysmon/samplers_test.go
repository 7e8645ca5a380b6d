package sysmon

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// values returns what a sampler gives of a root.
func values(t *testing.T, s Sampler, root Root) map[string]float64 {
	t.Helper()
	var out frame
	if err := s.sample(root, &out); err != nil {
		t.Fatal(err)
	}
	return asMap(t, out)
}

func recorded() Root { return Root{Proc: os.DirFS("testdata/proc"), Sys: fstest.MapFS{}} }

// TestSamplersRecorded compares with procfs what samplers read of files
// recorded from a machine with Linux 6.18.
func TestSamplersRecorded(t *testing.T) {
	proc, err := procfs.NewFS("testdata/proc")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("pressure", func(t *testing.T) {
		want := map[string]float64{}
		for _, resource := range []string{"cpu", "io", "memory"} {
			psi, err := proc.PSIStatsForResource(resource)
			if err != nil {
				t.Fatal(err)
			}
			want["node_pressure_"+resource+"_waiting_seconds"] = float64(psi.Some.Total) / 1e6
			if resource != "cpu" {
				want["node_pressure_"+resource+"_stalled_seconds"] = float64(psi.Full.Total) / 1e6
			}
		}
		if diff := cmp.Diff(want, values(t, pressure(), recorded())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("softirqs", func(t *testing.T) {
		all, err := proc.Softirqs()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for name, counts := range map[string][]uint64{"HI": all.Hi, "TIMER": all.Timer, "NET_TX": all.NetTx, "NET_RX": all.NetRx, "BLOCK": all.Block,
			"IRQ_POLL": all.IRQPoll, "TASKLET": all.Tasklet, "SCHED": all.Sched, "HRTIMER": all.HRTimer, "RCU": all.RCU} {
			for cpu, n := range counts {
				if n > 0 {
					want[fmt.Sprintf("node_softirqs,%d,%s", cpu, name)] = float64(n)
				}
			}
		}
		if diff := cmp.Diff(want, values(t, softirqs(), recorded())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("interrupts", func(t *testing.T) {
		self, err := procfsInterrupts(t)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for name, i := range self {
			if _, err := strconv.Atoi(name); err == nil {
				name = i.Devices[strings.LastIndexByte(i.Devices, ' ')+1:]
			}
			for cpu, text := range i.Values {
				if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && len(i.Values) == 2 {
					want[fmt.Sprintf("node_interrupts,%d,%s", cpu, name)] += n
				}
			}
		}
		if diff := cmp.Diff(want, values(t, interrupts(), recorded())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("disk", func(t *testing.T) {
		block, err := blockdevice.NewFS("testdata/proc", "testdata")
		if err != nil {
			t.Fatal(err)
		}
		stats, err := block.ProcDiskstats()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for _, d := range stats {
			if d.ReadIOs+d.WriteIOs == 0 {
				continue
			}
			want["node_disk_reads_completed,"+d.DeviceName] = float64(d.ReadIOs)
			want["node_disk_read_bytes,"+d.DeviceName] = float64(d.ReadSectors * 512)
			want["node_disk_read_time_seconds,"+d.DeviceName] = float64(d.ReadTicks) / 1e3
			want["node_disk_writes_completed,"+d.DeviceName] = float64(d.WriteIOs)
			want["node_disk_written_bytes,"+d.DeviceName] = float64(d.WriteSectors * 512)
			want["node_disk_write_time_seconds,"+d.DeviceName] = float64(d.WriteTicks) / 1e3
			want["node_disk_io_time_seconds,"+d.DeviceName] = float64(d.IOsTotalTicks) / 1e3
		}
		if diff := cmp.Diff(want, values(t, disk(), recorded())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("conntrack", func(t *testing.T) {
		want := map[string]float64{"node_nf_conntrack_entries": 1234, "node_nf_conntrack_entries_limit": 262144}
		if diff := cmp.Diff(want, values(t, conntrack(), recorded())); diff != "" {
			t.Error(diff)
		}
	})
}

// procfsInterrupts has procfs read the fixture, which it only does for a process.
func procfsInterrupts(t *testing.T) (procfs.Interrupts, error) {
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/proc/interrupts")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir+"/1", 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dir+"/interrupts", b, 0o644); err != nil {
		return nil, err
	}
	proc, err := procfs.NewFS(dir)
	if err != nil {
		return nil, err
	}
	p, err := proc.Proc(1)
	if err != nil {
		return nil, err
	}
	return p.Interrupts()
}

func TestInterruptName(t *testing.T) {
	for _, tt := range []struct{ name, description, want string }{
		{"LOC", "   Local timer interrupts", "LOC"},
		{"24", "  IO-APIC   5-edge      ACPI:Ged", "ACPI:Ged"},
		{"16", "  IR-IO-APIC   16-fasteoi   ehci_hcd:usb1, i801_smbus", "ehci_hcd:usb1, i801_smbus"},
		{"27", "  GICv3  27 Level     arch_timer", "arch_timer"},
		{"130", "  IR-PCI-MSI-0000:3b:00.0   0-edge      mlx5_comp0@pci:0000:3b:00.0", "mlx5_comp0@pci:0000:3b:00.0"},
		{"9", "  XT-PIC  acpi", "acpi"},
		{"5", "", "5"},
	} {
		if got := interruptName(tt.name, tt.description); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.name, tt.description, got, tt.want)
		}
	}
}

// TestInterruptsOfOneName sums devices that share a name, and leaves zeros out.
func TestInterruptsOfOneName(t *testing.T) {
	root := Root{Proc: fstest.MapFS{"interrupts": {Data: []byte("   CPU0 CPU3\n" +
		"1: 5 0 PIC 1-edge eth0\n2: 7 1 PIC 2-edge eth0\nLOC: 0 9 Local timer interrupts\nERR: 4\n")}}}
	want := map[string]float64{"node_interrupts,0,eth0": 12, "node_interrupts,3,eth0": 1, "node_interrupts,3,LOC": 9}
	if diff := cmp.Diff(want, values(t, interrupts(), root)); diff != "" {
		t.Error(diff)
	}
}

func number(n uint64) *fstest.MapFile { return &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", n)} }

func TestFrequency(t *testing.T) {
	const cpus = "devices/system/cpu/"
	sys := fstest.MapFS{
		cpus + "cpu0/cpufreq/scaling_cur_freq":  number(2600000),
		cpus + "cpu10/cpufreq/scaling_cur_freq": number(1200000),
		cpus + "cpu11/topology/core_id":         number(1),
		cpus + "cpufreq/policy0/x":              number(1),
	}
	s := frequency()
	want := map[string]float64{"node_cpu_scaling_frequency_hertz,0": 2.6e9, "node_cpu_scaling_frequency_hertz,10": 1.2e9}
	if diff := cmp.Diff(want, values(t, s, Root{Sys: sys})); diff != "" {
		t.Error(diff)
	}
	delete(sys, cpus+"cpu10/cpufreq/scaling_cur_freq") // taken offline
	delete(want, "node_cpu_scaling_frequency_hertz,10")
	if diff := cmp.Diff(want, values(t, s, Root{Sys: sys})); diff != "" {
		t.Error(diff)
	}
}

// TestEnergy has a counter wrap.
func TestEnergy(t *testing.T) {
	const folder = "class/powercap/"
	sys := fstest.MapFS{}
	zone := func(entry, name string, now, limit uint64) {
		sys[folder+entry+"/name"] = &fstest.MapFile{Data: []byte(name + "\n")}
		sys[folder+entry+"/energy_uj"] = number(now)
		sys[folder+entry+"/max_energy_range_uj"] = number(limit)
	}
	sys[folder+"intel-rapl/enabled"] = number(1)
	zone("intel-rapl:0", "package-0", 1000, 5000)
	zone("intel-rapl:0:0", "core", 70, 5000)
	zone("intel-rapl-mmio:0", "package-0", 3, 5000)
	s := energy()
	at := func(wantPackage, wantCore float64) {
		t.Helper()
		want := map[string]float64{"node_rapl_joules,package-0": wantPackage, "node_rapl_joules,package-0/core": wantCore}
		if diff := cmp.Diff(want, values(t, s, Root{Sys: sys})); diff != "" {
			t.Error(diff)
		}
	}
	at(0, 0)
	sys[folder+"intel-rapl:0/energy_uj"] = number(4900)
	sys[folder+"intel-rapl:0:0/energy_uj"] = number(71)
	at(0.0039, 0.000001)
	sys[folder+"intel-rapl:0/energy_uj"] = number(200) // wrapped
	at(0.0042, 0.000001)
}

// TestOptional is a machine that lacks what many lack: no fault, but named.
func TestOptional(t *testing.T) {
	r, err := newRecorder(Options{Root: Root{Proc: fstest.MapFS{}, Sys: fstest.MapFS{}},
		Samplers: []Sampler{pressure(), conntrack(), disk(), frequency(), energy(), memory()}})
	if err != nil {
		t.Fatal(err)
	}
	r.Mark()
	close(r.done)
	rec := r.Stop()
	if diff := cmp.Diff([]string{"pressure", "conntrack", "disk", "frequency", "energy"}, rec.Missing); diff != "" {
		t.Error(diff)
	}
	if len(rec.Faults) != 1 || !strings.HasPrefix(rec.Faults[0], "memory: ") {
		t.Errorf("faults %q", rec.Faults)
	}
}

// TestSparse: what a sparse sampler left out at the start was zero.
func TestSparse(t *testing.T) {
	proc := fstest.MapFS{"softirqs": {Data: []byte("CPU0\nNET_RX: 0\n")}}
	r, err := newRecorder(Options{Root: Root{Proc: proc}, Samplers: []Sampler{softirqs()}})
	if err != nil {
		t.Fatal(err)
	}
	r.Mark()
	proc["softirqs"].Data = []byte("CPU0\nNET_RX: 7\n")
	r.Mark()
	proc["softirqs"].Data = []byte("damaged")
	close(r.done)
	rec := r.Stop()
	want := []Series{{map[string]string{"cpu": "0", "softirq": "NET_RX"}, []Value{0, 7, Absent}}}
	if diff := cmp.Diff(want, rec.Families[0].Series, sameValue); diff != "" {
		t.Error(diff)
	}
}

// stat returns a line of /proc/PID/stat.
func stat(name string, parent, user, system, started, pages int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "7 (%s) S %d 1 1 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 1 0 %d 99 %d 184\n", name, parent, user, system, started, pages)}
}

// TestProcessGroups plays daemons that start, change their program, end, and
// whose PID is another's later.
func TestProcessGroups(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	page := float64(os.Getpagesize())
	proc := fstest.MapFS{
		"stat":          {Data: []byte("cpu 1\n")},
		self + "/stat":  stat("felix", 50, 1000, 1000, 1, 1), // the recorder, of whatever name
		"50/stat":       stat("felix-script", 1, 1000, 1000, 1, 1),
		"10/stat":       stat("odd) (felix", 1, 100, 50, 1, 10),
		"11/stat":       stat("python3", 1, 7, 0, 1, 5),
		"11/cmdline":    {Data: []byte("python3\x00/usr/bin/load.py\x00")},
		"13/notes.text": {Data: []byte("ended as we looked")},
	}
	newest := func(pid int) {
		proc["loadavg"] = &fstest.MapFile{Data: fmt.Appendf(nil, "0.00 0.01 0.05 1/80 %d\n", pid)}
	}
	newest(11)
	s := ProcessGroups([]Group{{"cni", regexp.MustCompile(`felix|flanneld`)}, {"load", regexp.MustCompile(`load\.py`)}})
	ended, loadEnded := 0.0, 0.0
	at := func(user, system, pages, count, loadUser, loadCount float64) {
		t.Helper()
		want := map[string]float64{
			"cnibench_process_group_cpu_seconds,cni,user":       user,
			"cnibench_process_group_cpu_seconds,cni,system":     system,
			"cnibench_process_group_resident_memory_bytes,cni":  pages * page,
			"cnibench_process_group_processes,cni":              count,
			"cnibench_process_group_cpu_seconds,load,user":      loadUser,
			"cnibench_process_group_cpu_seconds,load,system":    0,
			"cnibench_process_group_resident_memory_bytes,load": 5 * loadCount * page,
			"cnibench_process_group_processes,load":             loadCount,
			"cnibench_process_group_ended_processes,cni":        ended,
			"cnibench_process_group_ended_processes,load":       loadEnded,
		}
		if diff := cmp.Diff(want, values(t, s, Root{Proc: proc})); diff != "" {
			t.Error(diff)
		}
	}
	at(1, 0.5, 10, 1, 0.07, 1)
	proc["12/stat"] = stat("not-heard-of", 1, 9, 9, 1, 5)
	at(1, 0.5, 10, 1, 0.07, 1)
	proc["12/stat"] = stat("other", 1, 9, 9, 1, 5)
	proc["12/cmdline"] = &fstest.MapFile{Data: []byte("other\x00")}
	newest(12)
	at(1, 0.5, 10, 1, 0.07, 1)
	proc["12/stat"] = stat("flanneld", 1, 12, 9, 1, 5) // exec
	at(1.12, 0.59, 15, 2, 0.07, 1)
	delete(proc, "10/stat")
	delete(proc, "11/stat")
	proc["12/stat"] = stat("flanneld", 1, 13, 9, 1, 5)
	ended, loadEnded = 1, 1
	at(1.13, 0.59, 5, 1, 0.07, 0)
	proc["12/stat"] = stat("felix", 1, 2, 0, 999, 3) // another process
	ended = 2
	at(1.15, 0.59, 3, 1, 0.07, 0)
	proc["14/stat"] = stat("sleeper", 1, 1, 1, 1, 1)
	newest(14)
	for range settled {
		at(1.15, 0.59, 3, 1, 0.07, 0)
	}
	proc["14/stat"] = stat("felix", 1, 1, 1, 1, 1) // too late: it is not looked at any more
	at(1.15, 0.59, 3, 1, 0.07, 0)
}

// FuzzProcessStat: no text may panic.
func FuzzProcessStat(f *testing.F) {
	f.Add(stat("a) (b", 1, 2, 3, 4, 5).Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		var out frame
		_, _ = parseProcessStat(strings.NewReader(string(b)), &out)
	})
}

// TestStream gives the same text as the whole recording does, cut at families.
func TestStream(t *testing.T) {
	r, err := newRecorder(Options{Root: recorded(), Labels: map[string]string{"node": "n"},
		Samplers: append(All(), ProcessGroups([]Group{{"a", regexp.MustCompile("a")}}))})
	if err != nil {
		t.Fatal(err)
	}
	r.Mark()
	r.Mark()
	close(r.done)
	r.End()
	var text strings.Builder
	var cuts []string
	err = StreamOpenMetrics(&text, r.Part(), func(yield func(Family) bool) {
		for _, name := range r.Names() {
			if !yield(r.Part(name).Families[0]) {
				return
			}
		}
	}, func() error {
		cuts = append(cuts, text.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(write(t, r.Stop()), text.String()); diff != "" {
		t.Error(diff)
	}
	if len(cuts) != 1+len(r.Names()) {
		t.Errorf("%d parts of %d families", len(cuts), len(r.Names()))
	}
	for i, cut := range cuts {
		recs, err := ReadOpenMetrics(strings.NewReader(cut + EndOpenMetrics))
		if err != nil || len(recs) != 1 || len(recs[0].Families) != i {
			t.Fatalf("cut after %d families: %v", i, err)
		}
	}
	twice := func(yield func(Family) bool) {
		f := r.Part(r.Names()[0]).Families[0]
		for range 2 {
			if !yield(f) {
				return
			}
		}
	}
	if err := StreamOpenMetrics(&text, r.Part(), twice, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "family twice") {
		t.Errorf("error %v", err)
	}
	if err := StreamOpenMetrics(&text, r.Part(), twice, func() error { return fs.ErrClosed }); err == nil {
		t.Error("an error of part was lost")
	}
}

// TestHour is an hour of a busy machine with 64 CPUs: what it keeps in memory.
func TestHour(t *testing.T) {
	busy := Sampler{Name: "busy", Metrics: []Metric{{"busy", "counter", "", "Counters.", []string{"series"}}}}
	second := 0
	var names []string
	for i := range 2000 {
		names = append(names, strconv.Itoa(i))
	}
	busy.sample = func(_ Root, out *frame) error {
		second++
		for i, name := range names {
			out.add("busy", float64(second*(100+i%7)+i)/100, name)
		}
		return nil
	}
	r, err := newRecorder(Options{Samplers: []Sampler{busy}})
	if err != nil {
		t.Fatal(err)
	}
	at := r.now()
	for range 3600 {
		at = at.Add(Interval)
		r.take(at)
	}
	kept := 0
	for _, c := range r.columns {
		kept += cap(c.bytes)
	}
	t.Logf("2,000 series, 3,600 snapshots: %.1f MiB", float64(kept)/(1<<20))
	if kept > 20<<20 {
		t.Errorf("an hour takes %d bytes", kept)
	}
	if v := r.columns[seriesKey{"busy", [2]string{"7"}}].values(3600); v[3599] != Value(3600*100+7)/100 {
		t.Errorf("last value %v", v[3599])
	}
}
