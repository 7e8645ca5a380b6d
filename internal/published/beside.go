package published

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Beside returns the studies' ratios that match results of the report, in the order of the
// results. They match if contender, class of step and metric are the same and both have a
// baseline. A table that was measured at a share of the study's highest rate is compared with
// the step at the same share of ours. The slice is never nil.
func Beside(r *analysis.Report, studies []Study) []analysis.PublishedFigure {
	loads := loadsOf(r)
	figures := []analysis.PublishedFigure{}
	for _, res := range r.Results {
		l, known := loads[res.Step]
		if !known || res.VsBaseline == nil || !finite(res.VsBaseline) {
			continue
		}
		for _, s := range studies {
			for _, t := range s.Tables {
				if !t.at(l.share) {
					continue
				}
				for column, c := range t.Columns {
					if c.Class != l.class || c.Metric != res.Metric {
						continue
					}
					for i := range t.Rows {
						row := &t.Rows[i]
						ratio, there := t.ratio(row, column)
						if row.Contender != res.Contender || !there {
							continue
						}
						figures = append(figures, analysis.PublishedFigure{
							Contender: res.Contender, Kernel: res.Kernel, Underlay: res.Underlay, Step: res.Step,
							Metric: res.Metric, Better: res.Better, Ours: *res.VsBaseline,
							Ratio: ratio, Study: s.ID, Table: t.Title, Name: row.Name, Read: t.Read,
							LineLimited: s.limited(&t, row, column), Runs: row.runs(column),
						})
					}
				}
			}
		}
	}
	return figures
}

// finite reports whether all values of the comparison are finite, since JSON has no others.
func finite(c *analysis.Comparison) bool {
	sum := c.Ratio
	if c.CI != nil {
		sum += c.CI[0] + c.CI[1]
	}
	if c.P != nil {
		sum += *c.P
	}
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// load is the kind and rate of a step's traffic.
type load struct {
	class string  // see Class
	share float64 // its rate divided by the highest that the host network sustains; 0 if unknown or without a rate
}

// loadsOf returns the loads of the report's steps that a study may have too. The highest rate
// is the one that the plan's calibration found, or the highest rate of the steps. If the
// calibration was for the slowest contender, no share of a study applies.
func loadsOf(r *analysis.Report) map[string]load {
	loads, top := map[string]load{}, map[string]float64{}
	for _, s := range r.Steps {
		if class := Class(s); class != "" {
			loads[s.ID] = load{class: class}
			top[class] = max(top[class], number(s.Params[result.RateParam]))
		}
	}
	for _, s := range r.Steps {
		l, known := loads[s.ID]
		if !known || top[l.class] == 0 || r.Plan.SharesOf == result.SharesOfSlowest {
			continue
		}
		highest := top[l.class]
		if key, err := s.Load(); err == nil && r.Plan.Capacity[key] > 0 {
			highest = r.Plan.Capacity[key]
		}
		l.share = number(s.Params[result.RateParam]) / highest
		loads[s.ID] = l
	}
	return loads
}

// sameShare is the largest ratio of two shares that count as equal. It is smaller than the
// ratio of any two neighbouring rates of a suite or study.
const sameShare = 1.12

// at reports whether the table was measured at the share of the highest rate.
func (t *Table) at(share float64) bool {
	return t.Load == 0 || share > 0 && math.Abs(math.Log(share/t.Load)) < math.Log(sameShare)
}

// Class returns the kind of a step's load, so that steps of different runs and studies can be
// compared: "tcp-1" is one TCP stream, "tcp-multi" several, "tcp-lat-1k" qperf's latency with 1
// KiB, "http-350" responses of 350 bytes at a constant rate, "file-ftp" a large file,
// "tcp-rr-1" one connection. A path other than pod to pod is appended. Class returns "" for a
// load that no study has.
func Class(s result.Step) string {
	class := ""
	switch s.Workload {
	case "tcp_stream", "udp_stream", "tcp_bulk", "udp_bulk":
		class = s.Workload[:len("tcp-")-1] + "-" + oneOrMany(s.Params["streams"])
	case "http_get", "ftp_get", "scp_copy":
		protocol, _, _ := strings.Cut(s.Workload, "_")
		class = "file-" + protocol
	case "tcp_lat", "tcp_bw", "udp_lat", "udp_bw":
		size, known := map[float64]string{1: "1b", 1024: "1k", 4096: "4k"}[number(s.Params["size"])]
		if !known {
			return ""
		}
		class = strings.ReplaceAll(s.Workload, "_", "-") + "-" + size
	case "http_rate":
		if s.Params["connection_per_request"] == true {
			return ""
		}
		response, err := unit.ParseBytes(fmt.Sprint(s.Params["response"]))
		size, known := map[unit.Bytes]string{350: "350", 4096: "4k"}[response]
		if err != nil || !known {
			return ""
		}
		class = "http-" + size
	case "tcp_rr", "tcp_crr", "udp_rr":
		if number(s.Params["rate"]) > 0 {
			return "" // the studies have closed loops only
		}
		class = strings.ReplaceAll(s.Workload, "_", "-") + "-" + oneOrMany(s.Params["connections"])
	default:
		return ""
	}
	if s.Path != "" && s.Path != "pod" {
		class += "-" + s.Path
	}
	return class
}

func oneOrMany(n any) string {
	if number(n) > 1 {
		return "multi"
	}
	return "1"
}

// number returns a parameter's value, as a plan or its JSON holds it; 0 if it is not a number.
func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	case string: // a share that is not a rate yet
		if share, err := strconv.ParseFloat(strings.TrimSuffix(n, "%"), 64); err == nil {
			return share
		}
	}
	return 0
}
