package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// DiagnoseDir judges what is there, without measuring: a case that --save wrote, or a run
// directory. Of a run with several contenders it takes the one that asked names, else the
// only one or a cluster's own.
func DiagnoseDir(name, asked string, show func(*diagnose.Case, *diagnose.Verdict) error) error {
	c, err := loadCase(name)
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		c, err = buildCase(name, asked)
	}
	if err != nil {
		return err
	}
	v := diagnose.Diagnose(c)
	return errors.Join(show(c, v), verdictCode(v))
}

func loadCase(file string) (*diagnose.Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if c, is, err := diagnose.ReadPaste(text); is {
		return c, err
	}
	var c diagnose.Case
	if err := json.Unmarshal(text, &c); err != nil || c.Schema != diagnose.CaseSchema {
		return nil, exit.Usage("%s: neither a run directory, nor a case that cnibench diagnose --save wrote, nor a paste of doctor --issue", file)
	}
	return &c, nil
}

// buildCase makes a case of a run directory: of its samples' figures, and of the counters
// that were recorded beside them. The contender's pods stand for pods, the baseline's for
// nodes. What a run does not record (offloads, queues, routes) is listed as unseen.
func buildCase(dir, asked string) (*diagnose.Case, error) {
	rec, err := result.Load(dir)
	if err != nil {
		return nil, err
	}
	id, err := pickContender(&rec.Run, asked)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c := &diagnose.Case{Schema: diagnose.CaseSchema, Arena: rec.Run.Arena, Contender: id, Ends: []string{"node1", "node2"}, Pods: []string{"node1-pod1", "node2-pod1"}}
	c.Unseen = []diagnose.Unseen{{ID: "offload-off", Why: "a run records counters, not how devices, queues, routes and rules are set up; and bulk went one way",
		Remedy: "cnibench diagnose with the run's --arena measures and looks"}}
	for i := range rec.Run.Contenders {
		if info := &rec.Run.Contenders[i]; info.ID == id {
			c.Transport = diagnose.TransportOf(info.Datapath)
		}
	}
	if text := rec.Run.Plan.Settings["max-rate"]; text != "" {
		if rate, err := unit.ParseBitRate(text); err == nil {
			c.MaxRate = float64(rate)
		}
	}
	for _, rung := range []struct{ contender, kind string }{{id, diagnose.PodPod}, {rec.Run.Baseline, diagnose.Host}} {
		p := buildPath(root, c, rec, rung.contender, rung.kind)
		if len(p.Probes) > 0 {
			c.Paths = append(c.Paths, p)
		}
	}
	if len(c.Paths) == 0 || c.Paths[0].Kind != diagnose.PodPod {
		return nil, fmt.Errorf("%s: no valid sample of %s from pod to pod whose figures tell anything", dir, id)
	}
	return c, nil
}

// pickContender returns the contender of the run that is looked at.
func pickContender(r *result.Run, asked string) (string, error) {
	var all []string
	for i := range r.Contenders {
		if id := r.Contenders[i].ID; id != r.Baseline {
			all = append(all, id)
		}
	}
	switch {
	case asked != "":
		return text.Find("contender", asked, all, func(id string) string { return id })
	case slices.Contains(all, ThisCluster):
		return ThisCluster, nil
	case len(all) == 1:
		return all[0], nil
	}
	return "", exit.Usage("the run has %d contenders; name one with --contender: %s", len(all), strings.Join(all, ", "))
}

// figuresOf are the metrics of samples that are figures of a probe. Retransmits are counted
// by bytes that arrived.
var figuresOf = []struct{ metric, workload, probe, figure string }{
	{string(result.Goodput), "tcp", diagnose.Bulk, diagnose.Goodput},
	{"retransmits_per_gib", "tcp", diagnose.Bulk, diagnose.Retransmits},
	{"loss", "udp", diagnose.Large, diagnose.Loss},
	{"network_time_p50", "tcp_rr", diagnose.RTT, diagnose.P50},
	{"connect_time_p50", "", diagnose.Connect, diagnose.P50},
	{"connect_time_max", "", diagnose.Connect, diagnose.MaxTime},
}

// segment is the payload of a TCP segment, bytes: a GiB has that many times fewer.
const segment = 1448

// buildPath returns a contender's samples from pod to pod as a path, and adds the endpoints
// that were recorded to the case.
func buildPath(root *os.Root, c *diagnose.Case, rec *result.Record, contender, kind string) diagnose.Path {
	p := diagnose.Path{Kind: kind, From: c.Ends[0], To: c.Ends[1], Probes: map[string]diagnose.Probe{}}
	if kind == diagnose.PodPod {
		p.From, p.To = c.Pods[0], c.Pods[1]
	}
	values := map[[2]string][]float64{}
	for i := range rec.Samples {
		s := &rec.Samples[i]
		if s.Contender != contender || s.Verdict != result.Valid || s.Path != "pod" {
			continue
		}
		for _, f := range figuresOf {
			v, has := s.Metrics[f.metric]
			if !has || !strings.HasPrefix(s.Workload, f.workload) {
				continue
			}
			if f.figure == diagnose.Retransmits {
				v *= segment / float64(1<<30)
			}
			values[[2]string{f.probe, f.figure}] = append(values[[2]string{f.probe, f.figure}], v)
			probe, there := p.Probes[f.probe]
			if !there {
				probe = diagnose.Probe{Figures: map[string]float64{}, Counters: map[string]map[string]float64{}}
			}
			if f.figure == diagnose.Goodput || f.probe != diagnose.Bulk && !there {
				probe.Seconds += float64(s.Elapsed)
				for _, r := range recordings(root, s) {
					addRecording(c, r, probe.Counters)
				}
			}
			p.Probes[f.probe] = probe
		}
	}
	for at, list := range values {
		p.Probes[at[0]].Figures[at[1]] = stat.Median(list)
	}
	return p
}

// recordings reads a sample's recordings; none where there are none, or where they are spoilt,
// which `cnibench verify` says.
func recordings(root *os.Root, s *result.Sample) []*sysmon.Recording {
	if s.Raw == "" {
		return nil
	}
	f, err := result.OpenFile(root, filepath.ToSlash(filepath.Join(s.Raw, sysmon.SampleFile)))
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(128<<20))
	if err != nil {
		return nil
	}
	defer z.Close()
	list, err := sysmon.ReadOpenMetrics(io.LimitReader(z, 256<<20))
	if err != nil {
		return nil
	}
	return list
}

// addRecording adds the growth of a recording's counters over its whole length, by endpoint,
// and how full its table of connections was.
func addRecording(c *diagnose.Case, r *sysmon.Recording, counters map[string]map[string]float64) {
	name := r.Labels["endpoint"]
	if name == "" {
		name = r.Labels["node"]
	}
	sum := counters[name]
	if sum == nil {
		sum = map[string]float64{}
		counters[name] = sum
	}
	i := slices.IndexFunc(c.Snapshots, func(s diagnose.Snapshot) bool { return s.Endpoint == name })
	if i < 0 {
		c.Snapshots = append(c.Snapshots, diagnose.Snapshot{Endpoint: name, Node: r.Labels["node"], Pod: name != r.Labels["node"]})
		i = len(c.Snapshots) - 1
	}
	snap := &c.Snapshots[i]
	for _, f := range r.Families {
		for _, one := range f.Series {
			known := slices.DeleteFunc(slices.Clone(one.Values), sysmon.Value.IsAbsent)
			if len(known) == 0 {
				continue
			}
			first, last := float64(known[0]), float64(known[len(known)-1])
			switch {
			case f.Name == "node_nf_conntrack_entries":
				snap.ConntrackCount = max(snap.ConntrackCount, int(slices.Max(known)))
			case f.Name == "node_nf_conntrack_entries_limit":
				snap.ConntrackMax = int(last)
			case f.Type == "counter" && last >= first:
				labels := maps.Clone(one.Labels)
				delete(labels, "endpoint")
				delete(labels, "node")
				sum[diagnose.Series(f.Name, labels)] += last - first
			}
		}
	}
}
