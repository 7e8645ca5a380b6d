package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes a run of metric files alone.

// figures returns CPU and memory of one side while the command ran: statexec's own means
// if the file has them, else means of its series.
func (f *statexecFile) figures() (sideFigures, error) {
	if f.cut > 0 && !f.ended {
		return sideFigures{}, &lineError{f.cut, errors.New("cut off before the command's end: no figures are taken from it")}
	}
	figures := sideFigures{cpu: map[string]float64{}}
	for _, mode := range result.CPUModes {
		if v, has := f.summary[mode]; has {
			figures.cpu[mode] = v
		}
	}
	figures.memory = f.summary[memoryOfSummary]
	if all(figures.cpu) && figures.memory > 0 {
		return figures, nil
	}
	if f.begin.IsZero() || !f.end.After(f.begin) {
		return figures, errors.New("the command's life is not in it: CPU and memory figures are missing")
	}
	for _, mode := range result.CPUModes {
		if _, has := figures.cpu[mode]; has {
			continue
		}
		rate, err := f.rec.Rate("node_cpu_seconds", map[string]string{"mode": mode}, f.begin, f.end)
		if err != nil {
			return figures, fmt.Errorf("CPU and memory figures are missing: %w", err)
		}
		figures.cpu[mode] = rate
	}
	if figures.memory > 0 {
		return figures, nil
	}
	memory, err := f.rec.Mean("node_memory_used_bytes", nil, f.begin, f.end)
	figures.memory = memory
	return figures, err
}

// label adds the labels that our own recordings have, and shifts the recording's clock so
// that the command begins at begin, unless begin is zero.
func (f *statexecFile) label(side string, begin time.Time) *sysmon.Recording {
	f.rec.Labels = map[string]string{"node": side, "endpoint": side}
	if !begin.IsZero() && !f.begin.IsZero() {
		shift := begin.Sub(f.begin)
		for i := range f.rec.Times {
			f.rec.Times[i] = f.rec.Times[i].Add(shift)
		}
		f.begin, f.end = f.begin.Add(shift), f.end.Add(shift)
	}
	return f.rec
}

// readStatexec makes a run of metric files alone: a sample for every command.
// Files of one instance, id and run with the roles client and server are one
// sample; a file without a role is its own client.
func readStatexec(ctx context.Context, src *source, opt Options) (*imported, error) {
	names := walk(src, ".", 4)
	names = slices.DeleteFunc(names, func(n string) bool {
		return !isRecording(n) || path.Base(n) == "results.prom"
	})
	parsed, err := parseAll(ctx, src, names, func(name string, data []byte) (*statexecFile, error) {
		f, err := decodeStatexec(data)
		if err != nil || !src.keep(name, f.size()) {
			return nil, err
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	in := newImported("statexec", opt)
	index := map[result.Key]int{}
	for i, f := range parsed {
		if f == nil {
			continue
		}
		key := result.Key{
			Contender: contenderID(clean(cmp.Or(f.labels["id"], "unnamed"))), Underlay: result.DefaultUnderlay,
			Step: clean(cmp.Or(f.labels["instance"], strings.TrimSuffix(path.Base(names[i]), path.Ext(names[i])))), Round: 1,
		}
		if run, err := strconv.Atoi(f.labels["run"]); err == nil && run > 0 {
			key.Round = run
		}
		side := 0
		if f.labels["role"] == "server" {
			side = 1
		}
		at, seen := index[key]
		if !seen {
			at = len(in.samples)
			index[key] = at
			in.samples = append(in.samples, newSample(key, "command", "pod"))
		}
		s := &in.samples[at]
		if slices.ContainsFunc(s.recordings, func(r *sysmon.Recording) bool { return r.Labels["node"] == sideNames[side] }) {
			src.faultf(names[i], 0, "a second recording of %s, step %s, run %d, %s; the first counts", key.Contender, key.Step, key.Round, sideNames[side])
			continue
		}
		if f.cut > 0 {
			src.faultf(names[i], f.cut, "cut off; what is before it counts")
		}
		s.side(src, names[i], f, side)
		if s.Started.IsZero() || side == 0 {
			s.Started = cmp.Or(f.begin, f.rec.Times[0])
			s.Elapsed = unit.Seconds(f.end.Sub(f.begin).Seconds())
		}
	}
	for i := range in.samples {
		s := &in.samples[i]
		s.cost()
		if len(s.Metrics) == 0 && s.Verdict == result.Valid {
			s.invalidate("missing_result", "its recordings do not show a command from begin to end")
		}
	}
	return in.complete(opt)
}
