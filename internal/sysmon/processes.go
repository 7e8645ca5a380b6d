package sysmon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// Group is a set of processes whose CPU time is counted together, for example a CNI's
// daemons. A process belongs to the first group whose expression matches its name (comm)
// or its command line.
type Group struct {
	Name  string
	Match *regexp.Regexp
}

// settled is the number of snapshots after which a process in no group is not read again:
// by then it has executed its final program. A process that ran before the recording is
// settled from the start.
const settled = 3

// ProcessGroups samples the CPU time and memory of groups of processes. A snapshot reads
// one file for each process in a group, and lists /proc only if a process has started. The
// recorder and its ancestors belong to no group, because their command lines contain the
// command that they record.
func ProcessGroups(groups []Group) Sampler {
	p := &processes{groups: groups, byPID: make(map[string]*process), ended: make([]processSum, len(groups))}
	label := []string{"group"}
	return Sampler{
		Name:  "processes",
		Scope: ScopeNode,
		Metrics: []Metric{
			{"cnibench_process_group_cpu_seconds", "counter", "seconds", "CPU time of the group's processes, those that have ended included up to their last snapshot (/proc/PID/stat utime, stime).", []string{"group", "mode"}},
			{"cnibench_process_group_resident_memory_bytes", "gauge", "bytes", "Resident memory of the group's processes; pages that they share count for each (/proc/PID/stat rss).", label},
			{"cnibench_process_group_processes", "gauge", "", "Processes in the group.", label},
			{"cnibench_process_group_ended_processes", "counter", "", "Processes of the group that were seen and have ended; what each used after its last snapshot is not known.", label},
		},
		sample: p.sample,
	}
}

type processes struct {
	groups    []Group
	byPID     map[string]*process
	ended     []processSum // by group
	round     int          // number of the snapshot
	newest    string       // newest PID when /proc was last listed
	unsettled bool         // some process is not settled
	self      []string     // PIDs of the recorder and its ancestors
}

type process struct {
	processStat
	group int // -1: none
	seen  int // number of snapshots with this process
	round int // the last snapshot with this process
}

// processSum holds ticks of the kernel (user, system) and pages (resident).
type processSum struct {
	user, system, resident uint64
	count                  int
}

func (p *processes) sample(root Root, out *frame) error {
	if p.self == nil {
		p.self = ancestors(root.Proc, out)
	}
	p.round++
	newest, err := newestPID(root.Proc, out)
	if err != nil {
		return err
	}
	if newest != p.newest || p.unsettled {
		entries, err := fs.ReadDir(root.Proc, ".")
		if err != nil {
			return err
		}
		p.newest, p.unsettled = newest, false
		for _, e := range entries {
			if pid := e.Name(); pid[0] >= '1' && pid[0] <= '9' && isDigits(pid) && !slices.Contains(p.self, pid) {
				p.update(root.Proc, pid, out)
			}
		}
	} else { // no process has started
		for pid := range p.byPID {
			p.update(root.Proc, pid, out)
		}
	}
	for pid, known := range p.byPID {
		if known.round != p.round {
			p.addEnded(known)
			delete(p.byPID, pid)
		}
	}
	live := slices.Clone(p.ended)
	for i := range live {
		live[i].count = 0
	}
	for _, known := range p.byPID {
		if known.group >= 0 {
			sum := &live[known.group]
			sum.user += known.user
			sum.system += known.system
			sum.resident += known.resident
			sum.count++
		}
	}
	for i, sum := range live {
		name := p.groups[i].Name
		out.add("cnibench_process_group_cpu_seconds", float64(sum.user)/unit.UserHZ, name, "user")
		out.add("cnibench_process_group_cpu_seconds", float64(sum.system)/unit.UserHZ, name, "system")
		out.add("cnibench_process_group_resident_memory_bytes", float64(sum.resident)*float64(os.Getpagesize()), name)
		out.add("cnibench_process_group_processes", float64(sum.count), name)
		out.add("cnibench_process_group_ended_processes", float64(p.ended[i].count), name)
	}
	return nil
}

// update reads a process for this snapshot. A process that cannot be read has ended.
func (p *processes) update(proc fs.FS, pid string, out *frame) {
	known := p.byPID[pid]
	if known != nil && known.group < 0 && known.seen >= settled {
		known.round = p.round
		return
	}
	stat, err := readStat(proc, pid, out)
	if err != nil {
		return
	}
	if known != nil && known.started != stat.started { // another process has its PID now
		p.addEnded(known)
		known = nil
	}
	if known == nil {
		known = &process{group: -1}
		p.byPID[pid] = known
	}
	if known.group < 0 {
		known.group = p.groupOf(proc, pid, stat.name)
	}
	known.processStat = stat
	known.seen++
	if p.round == 1 {
		known.seen = settled
	}
	p.unsettled = p.unsettled || known.group < 0 && known.seen < settled
	known.round = p.round
}

// newestPID returns the PID of the process that started last (the last field of loadavg).
func newestPID(proc fs.FS, out *frame) (string, error) {
	file, err := proc.Open("loadavg")
	if err != nil {
		return "", err
	}
	defer file.Close()
	all, err := out.text(file)
	all = strings.TrimSpace(all)
	return all[strings.LastIndexByte(all, ' ')+1:], err
}

// addEnded adds the CPU time of a process that ended to the sum of its group.
func (p *processes) addEnded(ended *process) {
	if ended.group >= 0 {
		p.ended[ended.group].user += ended.user
		p.ended[ended.group].system += ended.system
		p.ended[ended.group].count++
	}
}

func (p *processes) groupOf(proc fs.FS, pid, name string) int {
	line, read := "", false
	for i, g := range p.groups {
		if g.Match.MatchString(name) {
			return i
		}
		if !read {
			b, _ := fs.ReadFile(proc, pid+"/cmdline") // kernel threads have none
			line, read = string(bytes.TrimRight(bytes.ReplaceAll(b, []byte{0}, []byte{' '}), " ")), true
		}
		if line != "" && g.Match.MatchString(line) {
			return i
		}
	}
	return -1
}

// ancestors returns the PIDs of this process and of its ancestors, without init.
func ancestors(proc fs.FS, out *frame) []string {
	pid := strconv.Itoa(os.Getpid())
	list := []string{pid}
	for {
		stat, err := readStat(proc, pid, out)
		if err != nil || stat.parent == "0" || stat.parent == "1" || slices.Contains(list, stat.parent) {
			return list
		}
		pid = stat.parent
		list = append(list, pid)
	}
}

type processStat struct {
	name, parent           string
	user, system, resident uint64 // ticks, and pages
	started                uint64 // ticks after boot
}

func readStat(proc fs.FS, pid string, out *frame) (processStat, error) {
	file, err := proc.Open(pid + "/stat")
	if err != nil {
		return processStat{}, err
	}
	defer file.Close()
	return parseProcessStat(file, out)
}

// parseProcessStat reads /proc/PID/stat: the PID, the name in parentheses (which may
// contain any character), and numbers.
func parseProcessStat(r io.Reader, out *frame) (processStat, error) {
	var s processStat
	all, err := out.text(r)
	if err != nil {
		return s, err
	}
	open, end := strings.IndexByte(all, '('), strings.LastIndexByte(all, ')')
	if open < 0 || end < open {
		return s, errors.New("no name in parentheses")
	}
	s.name = all[open+1 : end]
	fields := strings.Fields(all[end+1:]) // fields[0] is field 3 of proc_pid_stat(5)
	if len(fields) < 22 {
		return s, fmt.Errorf("%d columns, want 24 or more", len(fields)+2)
	}
	s.parent = fields[4-3]
	for _, f := range []struct {
		number int // of proc_pid_stat(5)
		into   *uint64
	}{{14, &s.user}, {15, &s.system}, {22, &s.started}, {24, &s.resident}} {
		if *f.into, err = strconv.ParseUint(fields[f.number-3], 10, 64); err != nil {
			return s, err
		}
	}
	return s, nil
}
