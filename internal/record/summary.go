package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// SummarySchema names the form of the JSON summary.
const SummarySchema = "cnibench/record-summary/1"

// Summary is what happened, and the machine's means over the command's life.
type Summary struct {
	Schema   string            `json:"schema"`
	Instance string            `json:"instance"`
	Role     Role              `json:"role"`
	Labels   map[string]string `json:"labels"` // of every series
	Command  []string          `json:"command"`
	ExitCode int               `json:"exit_code"`
	Error    string            `json:"error,omitempty"` // why the command did not run
	Begin    time.Time         `json:"begin"`           // of the command
	End      time.Time         `json:"end"`
	Seconds  float64           `json:"seconds"`
	// Means by name, then by the label in which values differ: CPU mode, device, zone or
	// process group. A mean with a single value has the key "".
	Means     map[string]map[string]float64 `json:"means"`
	Snapshots int                           `json:"snapshots"`
	Missing   []string                      `json:"missing,omitempty"` // samplers whose files this machine lacks
	Faults    []string                      `json:"faults,omitempty"`  // samplers that failed, and the loss of the other side
	Notes     []string                      `json:"notes,omitempty"`   // what the means do not contain, and why
	// CommandCPU is the CPU time of the command and of its descendants that
	// were waited for (wait4's rusage), by user and system.
	CommandCPU map[string]float64 `json:"command_cpu_seconds,omitempty"`
	File       string             `json:"file"`
	FileBytes  int64              `json:"file_bytes"`
	Recorder   Cost               `json:"recorder"`
}

// Cost is what the recorder itself took from its start to the written file
// (getrusage), the command not included.
type Cost struct {
	CPUSeconds       float64 `json:"cpu_seconds"`
	MaxResidentBytes int64   `json:"max_resident_bytes"`
}

// ownCost returns the cost until now, or zero if the system does not provide it.
func ownCost() Cost {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return Cost{}
	}
	c := Cost{CPUSeconds: float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, MaxResidentBytes: int64(u.Maxrss)}
	if runtime.GOOS == "linux" {
		c.MaxResidentBytes *= 1024 // Linux counts in KiB
	}
	return c
}

// mean says how a figure of the summary is computed from a recorded family.
type mean struct {
	name, help string
	family     string
	by         string // label in which the values differ; "": all series are summed
	rate       bool   // a counter's growth per second, else a gauge's mean
}

// means lists the figures of statexec, and further ones in which networks differ.
var means = []mean{
	{"cpu_mean_seconds", "CPU-seconds per second in the mode.", "node_cpu_seconds", "mode", true},
	{"memory_used_bytes", "Memory in use.", "node_memory_used_bytes", "", false},
	{"memory_free_bytes", "Memory free.", "node_memory_MemFree_bytes", "", false},
	{"memory_available_bytes", "Memory available.", "node_memory_MemAvailable_bytes", "", false},
	{"memory_buffers_bytes", "Memory in buffers.", "node_memory_Buffers_bytes", "", false},
	{"memory_cached_bytes", "Memory in the page cache.", "node_memory_Cached_bytes", "", false},
	{"memory_total_bytes", "Memory of the machine.", "node_memory_MemTotal_bytes", "", false},
	{"network_mean_sent_bytes_per_second", "Bytes that the interface sent.", "node_network_transmit_bytes", "device", true},
	{"network_mean_received_bytes_per_second", "Bytes that the interface received.", "node_network_receive_bytes", "device", true},
	{"network_mean_sent_packets_per_second", "Packets that the interface sent.", "node_network_transmit_packets", "device", true},
	{"network_mean_received_packets_per_second", "Packets that the interface received.", "node_network_receive_packets", "device", true},
	{"network_mean_sent_drops_per_second", "Packets dropped on their way out.", "node_network_transmit_drop", "device", true},
	{"network_mean_received_drops_per_second", "Packets received and dropped.", "node_network_receive_drop", "device", true},
	{"tcp_mean_retransmits_per_second", "TCP segments sent again.", "node_netstat_Tcp_RetransSegs", "", true},
	{"disk_mean_read_bytes_per_second", "Bytes read from the device.", "node_disk_read_bytes", "device", true},
	{"disk_mean_write_bytes_per_second", "Bytes written to the device.", "node_disk_written_bytes", "device", true},
	{"context_switches_per_second", "Context switches.", "node_context_switches", "", true},
	{"pressure_cpu_waiting_ratio", "Share of time in which some task waited for a CPU.", "node_pressure_cpu_waiting_seconds", "", true},
	{"pressure_io_waiting_ratio", "Share of time in which some task waited for I/O.", "node_pressure_io_waiting_seconds", "", true},
	{"pressure_memory_waiting_ratio", "Share of time in which some task waited for memory.", "node_pressure_memory_waiting_seconds", "", true},
	{"conntrack_entries", "Connections tracked.", "node_nf_conntrack_entries", "", false},
	{"cpu_frequency_hertz", "Frequency of the CPU.", "node_cpu_scaling_frequency_hertz", "cpu", false},
	{"power_watts", "Power that the zone drew.", "node_rapl_joules", "zone", true},
	{"process_group_cpu_mean_seconds", "CPU-seconds per second of the group's processes.", "cnibench_process_group_cpu_seconds", "group", true},
	{"process_group_resident_memory_bytes", "Resident memory of the group's processes.", "cnibench_process_group_resident_memory_bytes", "group", false},
	{"recorder_cpu_mean_seconds", "CPU-seconds per second that the recorder itself used.", "cnibench_recorder_cpu_seconds", "", true},
	{"recorder_resident_memory_bytes", "Resident memory of the recorder itself.", "cnibench_recorder_resident_memory_bytes", "", false},
}

// window is the command's life.
type window struct{ begin, end time.Time }

// inner returns the first and the last of the snapshots strictly within the window. At the
// window's ends the command does not run yet, or not any more.
func (w window) inner(times []time.Time) (first, last int, ok bool) {
	first = sort.Search(len(times), func(i int) bool { return times[i].After(w.begin) })
	last = sort.Search(len(times), func(i int) bool { return !times[i].Before(w.end) }) - 1
	return first, last, first < last
}

// within returns the recording with its inner snapshots only. The values of the first and
// the last of them are repeated at the window's begin and end.
func (w window) within(rec *sysmon.Recording) *sysmon.Recording {
	first, last, ok := w.inner(rec.Times)
	if !ok {
		return &sysmon.Recording{}
	}
	cut := &sysmon.Recording{Times: slices.Concat([]time.Time{w.begin}, rec.Times[first:last+1], []time.Time{w.end})}
	for _, f := range rec.Families {
		series := make([]sysmon.Series, 0, len(f.Series))
		for _, values := range f.Series {
			v := values.Values
			values.Values = slices.Concat(v[first:first+1], v[first:last+1], v[last:last+1])
			series = append(series, values)
		}
		f.Series = series
		cut.Families = append(cut.Families, f)
	}
	return cut
}

// minRateTime is how long a command must run for rates, because the kernel counts CPU time
// in ticks of 10 ms.
const minRateTime = 100 * time.Millisecond

func summarize(rec *sysmon.Recorder, o Options, w window, c *command) *Summary {
	all := rec.Part()
	s := &Summary{
		Schema: SummarySchema, Instance: o.instance(), Role: o.Pair.role(), Labels: all.Labels,
		Command: o.Command, ExitCode: c.code, Error: explainFailure(c),
		Begin: w.begin, End: w.end, Seconds: w.end.Sub(w.begin).Seconds(),
		Means: map[string]map[string]float64{}, Snapshots: len(all.Times), Missing: all.Missing,
		Faults: slices.Concat(all.Faults, c.faults), Notes: c.notes,
	}
	if s.Error != "" {
		return s // the command did not run
	}
	s.CommandCPU = map[string]float64{"user": c.user.Seconds(), "system": c.system.Seconds()}
	rates := w.end.Sub(w.begin) >= minRateTime
	if !rates {
		s.Notes = append(s.Notes, fmt.Sprintf("no rates: the command ran for less than %v", minRateTime))
	}
	_, _, gauges := w.inner(all.Times)
	if !gauges {
		s.Notes = append(s.Notes, fmt.Sprintf("no means of memory and other gauges: fewer than two snapshots fell into the command's life; they come %v and %v after its start, then every interval", earlyMarks[0], earlyMarks[1]))
	}
	s.noteEnded(rec, w)
	for _, m := range means {
		if m.rate && !rates || !m.rate && !gauges {
			continue
		}
		part := rec.Part(m.family)
		if len(part.Families) == 0 {
			continue
		}
		if !m.rate {
			part = w.within(part)
		}
		values := map[string]float64{}
		for _, series := range part.Families[0].Series {
			key := series.Labels[m.by]
			if _, done := values[key]; done {
				continue
			}
			if v, err := m.compute(part, key, w); err == nil { // after an error the mean is missing, not zero
				values[key] = v
			}
		}
		if len(values) > 0 {
			s.Means[m.name] = values
		}
	}
	if f := rec.Part("node_cpu_seconds").Families; len(f) > 0 {
		cpus := map[string]bool{}
		for _, series := range f[0].Series {
			cpus[series.Labels["cpu"]] = true
		}
		s.Means["cpu_cores"] = map[string]float64{"": float64(len(cpus))}
	}
	return s
}

// noteEnded adds notes about processes whose last CPU time the process groups lack.
func (s *Summary) noteEnded(rec *sysmon.Recorder, w window) {
	const family = "cnibench_process_group_ended_processes"
	part := rec.Part(family)
	if len(part.Families) == 0 {
		return
	}
	for _, series := range part.Families[0].Series {
		group := series.Labels["group"]
		if n, err := part.Delta(family, map[string]string{"group": group}, w.begin, w.end); err == nil && n > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%.0f processes of group %s ended: what each used after its last snapshot is not in the group's CPU time", n, group))
		}
	}
}

func (m mean) compute(part *sysmon.Recording, key string, w window) (float64, error) {
	var match map[string]string
	if m.by != "" {
		match = map[string]string{m.by: key}
	}
	if m.rate {
		return part.Rate(m.family, match, w.begin, w.end)
	}
	return part.Mean(m.family, match, w.begin, w.end)
}

// families returns the summary as metrics, each with one point at the command's
// end, and the command's status over all snapshots.
func (s *Summary) families(times []time.Time) []sysmon.Family {
	at := func(t time.Time, v float64) []sysmon.Value {
		values := make([]sysmon.Value, len(times))
		for i := range values {
			values[i] = sysmon.Absent
			if times[i].Equal(t) {
				values[i] = sysmon.Value(v)
			}
		}
		return values
	}
	status := make([]sysmon.Value, len(times))
	for i, t := range times {
		switch {
		case !t.Before(s.End):
			status[i] = 2
		case !t.Before(s.Begin):
			status[i] = 1
		}
	}
	gauge := func(name, help string, values []sysmon.Value) sysmon.Family {
		return sysmon.Family{Name: name, Type: "gauge", Help: help, Series: []sysmon.Series{{Values: values}}}
	}
	list := []sysmon.Family{
		gauge("cnibench_command_status", "The command: 0 not yet started, 1 running, 2 done.", status),
		gauge("cnibench_command_exit_code", "Exit code of the command as a shell gives it.", at(s.End, float64(s.ExitCode))),
		gauge("cnibench_summary_command_seconds", "Time that the command took.", at(s.End, s.Seconds)),
	}
	if cores, ok := s.Means["cpu_cores"]; ok {
		list = append(list, gauge("cnibench_summary_cpu_cores", "CPUs of the machine.", at(s.End, cores[""])))
	}
	if s.CommandCPU != nil {
		f := sysmon.Family{Name: "cnibench_summary_command_cpu_seconds", Type: "gauge", Help: "CPU time of the command and of its descendants that were waited for."}
		for _, mode := range slices.Sorted(maps.Keys(s.CommandCPU)) {
			f.Series = append(f.Series, sysmon.Series{Labels: map[string]string{"mode": mode}, Values: at(s.End, s.CommandCPU[mode])})
		}
		list = append(list, f)
	}
	for _, m := range means {
		f := sysmon.Family{Name: "cnibench_summary_" + m.name, Type: "gauge", Help: "While the command ran: " + m.help}
		for _, key := range slices.Sorted(maps.Keys(s.Means[m.name])) {
			series := sysmon.Series{Values: at(s.End, s.Means[m.name][key])}
			if m.by != "" {
				series.Labels = map[string]string{m.by: key}
			}
			f.Series = append(f.Series, series)
		}
		if len(f.Series) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// sheet is the file of the JSON summary. A nil sheet stands for no file.
type sheet struct {
	file         *os.File
	fresh, wrote bool
}

func openSheet(path string) (*sheet, error) {
	if path == "" {
		return nil, nil
	}
	file, fresh, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("the summary: %w", err)
	}
	return &sheet{file: file, fresh: fresh}, nil
}

func (f *sheet) save(s *Summary) error {
	if f == nil {
		return nil
	}
	f.wrote = true
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil && isRegular(f.file) {
		err = f.file.Truncate(0)
	}
	if err == nil {
		_, err = f.file.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the summary: %w", err)
	}
	return nil
}

// close closes the file, and removes it if openSheet made it and nothing was written.
func (f *sheet) close() error {
	if f == nil {
		return nil
	}
	err := f.file.Close()
	if f.fresh && !f.wrote {
		err = errors.Join(err, remove(f.file.Name()))
	}
	return err
}
