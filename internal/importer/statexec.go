package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// statexecFile is a metric file of statexec (blackswifthosting/statexec 0.7
// and later): the node's metrics once a second around a command.
type statexecFile struct {
	labels map[string]string // of all its samples: instance, role, id, run, …
	rec    *sysmon.Recording
	// begin and end of the command by the recorder's clock, which -mst sets
	// to any time; zero where the file does not show them.
	begin, end time.Time
	// summary is statexec's own means over the command's life: CPU-seconds
	// per second by mode, and "memory" in bytes. Older versions write none.
	summary map[string]float64
	// cut is the line at which a truncated file ends; 0 if the file is complete.
	cut   int
	ended bool // a snapshot after the command is in it
}

const (
	maxSeries = 50_000
	maxCells  = 1 << 24 // series × snapshots, 128 MiB
	maxSpan   = 30 * 24 * time.Hour
)

// plausibleTime is whether anybody can have measured then.
func plausibleTime(t time.Time) bool { return t.Year() >= 2000 && t.Year() < 2100 }

// statexecMetrics are statexec's metrics under the names that our recorder
// uses. statexec reads the same files of /proc (by gopsutil): its cached
// memory is Cached and SReclaimable together, and guest time is in user
// already, as in ours.
var statexecMetrics = map[string]struct {
	family, kind, unit, help string
	from, to                 string // label that tells its series apart: theirs, ours
}{
	"statexec_cpu_seconds_total":            {"node_cpu_seconds", "counter", "seconds", "Seconds that the CPUs of the machine spent in each mode since boot (statexec).", "cpu", "cpu"},
	"statexec_memory_total_bytes":           {family: "node_memory_MemTotal_bytes", kind: "gauge", unit: "bytes", help: "Memory of the machine (statexec)."},
	"statexec_memory_free_bytes":            {family: "node_memory_MemFree_bytes", kind: "gauge", unit: "bytes", help: "Free memory of the machine (statexec)."},
	"statexec_memory_available_bytes":       {family: "node_memory_MemAvailable_bytes", kind: "gauge", unit: "bytes", help: "Available memory of the machine (statexec)."},
	"statexec_memory_buffers_bytes":         {family: "node_memory_Buffers_bytes", kind: "gauge", unit: "bytes", help: "Buffers of the machine (statexec)."},
	"statexec_memory_cached_bytes":          {family: "node_memory_Cached_bytes", kind: "gauge", unit: "bytes", help: "Page cache and reclaimable slabs of the machine (statexec)."},
	"statexec_memory_used_bytes":            {family: "node_memory_used_bytes", kind: "gauge", unit: "bytes", help: "Memory of the machine in use by programs and the kernel, without buffers and cache (statexec)."},
	"statexec_network_received_bytes_total": {"node_network_receive_bytes", "counter", "bytes", "Bytes received by the interface, as the recorder's network namespace shows it (statexec).", "interface", "device"},
	"statexec_network_sent_bytes_total":     {"node_network_transmit_bytes", "counter", "bytes", "Bytes sent by the interface, as the recorder's network namespace shows it (statexec).", "interface", "device"},
	"statexec_disk_read_bytes_total":        {"node_disk_read_bytes", "counter", "bytes", "Bytes read from the disk (statexec).", "device", "device"},
	"statexec_disk_write_bytes_total":       {"node_disk_written_bytes", "counter", "bytes", "Bytes written to the disk (statexec).", "device", "device"},
}

// ownLabels tell series of one metric apart; all others are the file's.
var ownLabels = []string{"cpu", "mode", "interface", "device", "disk"}

const (
	statusMetric    = "statexec_command_status"
	cpuSummary      = "statexec_summary_cpu_mean_seconds"
	memorySummary   = "statexec_summary_memory_used_bytes"
	memoryOfSummary = "memory"
)

// decodeStatexec reads a metric file. Errors are *lineError: a line that is no
// sample, a file without any sample, one that is too large.
func decodeStatexec(data []byte) (*statexecFile, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &lineError{0, errEmpty}
	}
	p := statexecReader{
		heads: map[string]int{}, keys: map[string]int{}, index: map[int64]int{},
		file: &statexecFile{labels: map[string]string{}, summary: map[string]float64{}},
	}
	for n := 1; len(data) > 0; n++ {
		line := data
		i := bytes.IndexByte(data, '\n')
		if i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		line = bytes.TrimSuffix(line, []byte("\r")) // kubectl exec -t makes them
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		err := p.sample(line)
		if err != nil && i < 0 && n > 1 {
			p.file.cut = n
			break
		}
		if err != nil {
			return nil, &lineError{n, err}
		}
	}
	if err := p.finish(); err != nil {
		return nil, &lineError{0, err}
	}
	return p.file, nil
}

type statexecSeries struct {
	metric string
	labels map[string]string // its own
	values []sysmon.Value
}

type statexecReader struct {
	heads  map[string]int // by the text before the value; -1 is not wanted
	keys   map[string]int // by metric and labels in order: statexec writes labels in any order
	series []*statexecSeries
	index  map[int64]int // of snapshots, by milliseconds
	times  []int64
	last   int // the index of the snapshot before
	file   *statexecFile
}

// sample reads one line: name{label="value",…} value milliseconds
func (p *statexecReader) sample(line []byte) error {
	end := bytes.LastIndexByte(line, '}')
	if end < 0 {
		return fmt.Errorf("%.80q is no sample", line)
	}
	rest := bytes.TrimLeft(line[end+1:], " ")
	cut := bytes.IndexByte(rest, ' ')
	if cut < 0 {
		return fmt.Errorf("%.80q has no value and time", line)
	}
	s, err := p.find(line[:end+1])
	if err != nil || s < 0 {
		return err
	}
	v, err := strconv.ParseFloat(view(rest[:cut]), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("value %.40q", rest[:cut])
	}
	ms, err := strconv.ParseInt(view(bytes.TrimSpace(rest[cut:])), 10, 64)
	if err != nil || !plausibleTime(time.UnixMilli(ms)) {
		return fmt.Errorf("time %.40q", rest[cut:])
	}
	switch p.series[s].metric {
	case cpuSummary:
		p.file.summary[p.series[s].labels["mode"]] = v
		return nil
	case memorySummary:
		p.file.summary[memoryOfSummary] = v
		return nil
	}
	at, err := p.snapshot(ms)
	if err != nil {
		return err
	}
	values := p.series[s].values
	for len(values) <= at {
		values = append(values, sysmon.Absent)
	}
	values[at] = sysmon.Value(v)
	p.series[s].values = values
	return nil
}

// view is b as a string that lives no longer than b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// find is the index of the series of that head, -1 of one that is not kept.
func (p *statexecReader) find(head []byte) (int, error) {
	if i, ok := p.heads[string(head)]; ok {
		return i, nil
	}
	if len(p.heads) >= 8*maxSeries {
		return -1, fmt.Errorf("more than %d series", maxSeries)
	}
	text := string(head)
	metric, inside, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	if _, ok := statexecMetrics[metric]; !ok && metric != statusMetric && metric != cpuSummary && metric != memorySummary {
		if !strings.HasPrefix(metric, "statexec_") {
			return -1, fmt.Errorf("metric %.60q is not of statexec", metric)
		}
		p.heads[text] = -1 // another summary, or how long collecting took
		return -1, nil
	}
	labels, ok := parseLabels(inside)
	if !ok {
		return -1, fmt.Errorf("labels of %.80q", text)
	}
	own := map[string]string{}
	for name, v := range labels {
		if slices.Contains(ownLabels, name) {
			own[name] = v
			continue
		}
		if first, seen := p.file.labels[name]; seen && first != v {
			return -1, fmt.Errorf("label %.40s is %.40q, and %.40q above: two recordings in one file", name, v, first)
		}
		p.file.labels[name] = v
	}
	if mode := own["mode"]; mode == "guest" || mode == "guestNice" {
		p.heads[text] = -1
		return -1, nil
	}
	key := metric
	for _, name := range ownLabels {
		key += "\x00" + own[name]
	}
	i, seen := p.keys[key]
	if !seen {
		if i = len(p.series); i >= maxSeries {
			return -1, fmt.Errorf("more than %d series", maxSeries)
		}
		p.series = append(p.series, &statexecSeries{metric: metric, labels: own})
		p.keys[key] = i
	}
	p.heads[text] = i
	return i, nil
}

func (p *statexecReader) snapshot(ms int64) (int, error) {
	if p.last < len(p.times) && p.times[p.last] == ms {
		return p.last, nil
	}
	at, ok := p.index[ms]
	if !ok {
		at = len(p.times)
		if (at+1)*len(p.series) > maxCells {
			return 0, fmt.Errorf("more than %d values", maxCells)
		}
		p.times = append(p.times, ms)
		p.index[ms] = at
	}
	p.last = at
	return at, nil
}

// finish makes the recording, its snapshots in order of time.
func (p *statexecReader) finish() error {
	if len(p.times) == 0 || len(p.series) == 0 {
		return errors.New("no sample of statexec in it")
	}
	if len(p.times)*len(p.series) > maxCells {
		return fmt.Errorf("more than %d values", maxCells)
	}
	order := make([]int, len(p.times))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.times[a], p.times[b]) })
	rec := &sysmon.Recording{}
	for _, i := range order {
		rec.Times = append(rec.Times, time.UnixMilli(p.times[i]).UTC())
	}
	if span := rec.Times[len(rec.Times)-1].Sub(rec.Times[0]); span > maxSpan {
		return fmt.Errorf("it spans %v", span)
	}
	families := map[string]int{}
	unique := map[string]bool{}
	for _, s := range p.series {
		values := make([]sysmon.Value, len(order))
		for to, from := range order {
			values[to] = sysmon.Absent
			if from < len(s.values) {
				values[to] = s.values[from]
			}
		}
		s.values = nil
		if s.metric == statusMetric {
			p.status(rec.Times, values)
			continue
		}
		m, known := statexecMetrics[s.metric]
		if !known {
			continue // a summary
		}
		i, seen := families[m.family]
		if !seen {
			i = len(rec.Families)
			families[m.family] = i
			rec.Families = append(rec.Families, sysmon.Family{Name: m.family, Type: m.kind, Unit: m.unit, Help: m.help})
		}
		labels := map[string]string{}
		if m.to != "" {
			labels[m.to] = strings.ToValidUTF8(cmp.Or(s.labels[m.from], s.labels["disk"]), "\uFFFD")
		}
		if m.family == "node_cpu_seconds" {
			labels["cpu"] = strings.TrimPrefix(labels["cpu"], "cpu")
			labels["mode"] = strings.ToValidUTF8(s.labels["mode"], "\uFFFD")
		}
		if key := m.family + fmt.Sprint(labels); unique[key] {
			continue // told apart only by labels that are left out: the first counts
		} else {
			unique[key] = true
		}
		rec.Families[i].Series = append(rec.Families[i].Series, sysmon.Series{Labels: labels, Values: values})
	}
	p.file.rec = rec
	return nil
}

// size returns the recording's size in memory, bytes.
func (f *statexecFile) size() int64 {
	size := 24 * len(f.rec.Times)
	for _, family := range f.rec.Families {
		for _, s := range family.Series {
			size += 512 + 8*len(s.Values)
			for _, v := range s.Labels {
				size += len(v)
			}
		}
	}
	return int64(size)
}

// status finds the command: 0 before it, 1 while it runs, 2 after it.
func (p *statexecReader) status(times []time.Time, values []sysmon.Value) {
	for i, v := range values {
		if v == 1 {
			if p.file.begin.IsZero() {
				p.file.begin = times[i]
			}
			p.file.end = times[i]
		}
		p.file.ended = p.file.ended || v == 2
	}
}
