package sysmon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cgroup samples the CPU quota of the recorder's own control group: a pod's, where the
// recorder runs in one. A group without a quota has no periods.
func cgroup() Sampler {
	return Sampler{
		Name: "cgroup", Scope: ScopePod, Optional: true,
		Metrics: []Metric{
			{"container_cpu_cfs_periods", "counter", "", "Periods in which the control group's CPU quota counted (cpu.stat nr_periods).", nil},
			{"container_cpu_cfs_throttled_periods", "counter", "", "Periods in which the control group used its CPU quota up and was stopped (cpu.stat nr_throttled).", nil},
			{"container_cpu_cfs_throttled_seconds", "counter", "seconds", "Time for which the control group was stopped, summed over its CPUs (cpu.stat throttled_usec, or throttled_time of version 1).", nil},
		},
		sample: sampleCgroup,
	}
}

// sampleCgroup reads cpu.stat of the group that /proc/self/cgroup names. In a container
// its root is often the group's own folder.
func sampleCgroup(root Root, out *frame) error {
	if root.Sys == nil {
		return fs.ErrNotExist
	}
	groups, err := fs.ReadFile(root.Proc, "self/cgroup")
	if err != nil {
		return err
	}
	for _, folder := range cpuGroups(string(groups)) {
		err := readFile(root.Sys, path.Join(folder, "cpu.stat"), parseCPUStat, out)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fs.ErrNotExist
}

// cpuGroups returns the folders below /sys in which the group's cpu.stat can be.
func cpuGroups(groups string) (folders []string) {
	const mount = "fs/cgroup"
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		group := path.Clean("/" + fields[2])
		for _, controller := range strings.Split(fields[1], ",") {
			if controller == "cpu" {
				folders = append(folders, path.Join(mount, fields[1], group), path.Join(mount, "cpu", group), path.Join(mount, fields[1]), path.Join(mount, "cpu"))
			}
		}
		if fields[1] == "" {
			folders = append(folders, path.Join(mount, group), path.Join(mount, "unified", group), mount)
		}
	}
	return folders
}

// parseCPUStat reads lines of a name and a number. A group without a quota lacks them.
func parseCPUStat(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	for line := range strings.Lines(all) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		metric, unit := "", 1.0
		switch name {
		case "nr_periods":
			metric = "container_cpu_cfs_periods"
		case "nr_throttled":
			metric = "container_cpu_cfs_throttled_periods"
		case "throttled_usec":
			metric, unit = "container_cpu_cfs_throttled_seconds", 1e-6
		case "throttled_time": // version 1
			metric, unit = "container_cpu_cfs_throttled_seconds", 1e-9
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.add(metric, float64(n)*unit)
	}
	return nil
}

// CPULimit returns the CPU quota of this process' control group in CPUs; ok is false if
// the group has none, or nobody may read it.
func CPULimit(root Root) (cpus float64, ok bool) {
	groups, err := fs.ReadFile(root.Proc, "self/cgroup")
	if err != nil || root.Sys == nil {
		return 0, false
	}
	for _, folder := range cpuGroups(string(groups)) {
		text, err := fs.ReadFile(root.Sys, path.Join(folder, "cpu.max")) // version 2: "20000 100000", "max 100000"
		if err != nil {
			quota, err1 := fs.ReadFile(root.Sys, path.Join(folder, "cpu.cfs_quota_us"))
			period, err2 := fs.ReadFile(root.Sys, path.Join(folder, "cpu.cfs_period_us"))
			if err1 != nil || err2 != nil {
				continue
			}
			text = fmt.Appendf(nil, "%s %s", strings.TrimSpace(string(quota)), period)
		}
		var quota, period float64
		if _, err := fmt.Sscan(string(text), &quota, &period); err != nil || quota <= 0 || period <= 0 {
			return 0, false
		}
		return quota / period, true
	}
	return 0, false
}
