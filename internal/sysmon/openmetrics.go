package sysmon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// infoFamily is an info metric at the begin of a file. Its labels are a recording's
// Labels, and its points are the recording's Times. With them a reader can restore the
// recordings exactly.
const (
	infoFamily = "cnibench_recording"
	infoSample = infoFamily + "_info"
	infoHelp   = "One point for each snapshot of a recorder, under the labels that all of its series carry."
)

// SampleFile is the name of a sample's recordings in its raw folder: OpenMetrics,
// compressed with zstd.
const SampleFile = "metrics.om.zst"

// WriteSampleFile writes the recordings to f as a SampleFile, and closes f.
func WriteSampleFile(f io.WriteCloser, recs ...*Recording) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	if err := WriteOpenMetrics(z, recs...); err != nil {
		return err
	}
	return z.Close()
}

// WriteOpenMetrics writes the recordings as one OpenMetrics 1.0 text: each
// family once with all its series, each series with all its points in order
// of time, absent values left out. The recordings must have the same label
// names and differ in the labels' values. If the text would not be valid OpenMetrics,
// WriteOpenMetrics returns an error before it writes anything.
func WriteOpenMetrics(w io.Writer, recs ...*Recording) error {
	if err := Check(recs...); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if len(recs) > 0 {
		writeTimes(b, recs...)
	}
	for _, f := range familiesOf(recs) {
		writeFamily(b, f, recs)
	}
	b.WriteString(EndOpenMetrics)
	return b.Flush()
}

func writeFamily(b *bufio.Writer, f *Family, recs []*Recording) {
	fmt.Fprintf(b, "# TYPE %s %s\n", f.Name, f.Type)
	if f.Unit != "" {
		fmt.Fprintf(b, "# UNIT %s %s\n", f.Name, f.Unit)
	}
	if f.Help != "" {
		fmt.Fprintf(b, "# HELP %s %s\n", f.Name, escape.Replace(f.Help))
	}
	for _, r := range recs {
		own, ok := r.Family(f.Name)
		if !ok {
			continue
		}
		for _, s := range own.Series {
			labels := maps.Clone(r.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, s.Labels)
			head := sampleName(f) + inBraces(labels)
			for i, v := range s.Values {
				if !v.IsAbsent() {
					writePoint(b, head, float64(v), r.Times[i])
				}
			}
		}
	}
}

func writePoint(b *bufio.Writer, head string, v float64, t time.Time) {
	b.WriteString(head)
	line := b.AvailableBuffer()
	line = append(line, ' ')
	line = strconv.AppendFloat(line, v, 'g', -1, 64)
	line = append(line, ' ')
	line = strconv.AppendInt(line, t.Unix(), 10)
	line = append(line, ".000000000\n"...)
	for at, rest := len(line)-2, t.Nanosecond(); rest > 0; at, rest = at-1, rest/10 {
		line[at] += byte(rest % 10)
	}
	b.Write(line)
}

// sampleName returns the name of the family's samples.
func sampleName(f *Family) string {
	if f.Type == "counter" {
		return f.Name + "_total"
	}
	return f.Name
}

// familiesOf returns the families that have a value, each once, in the order in which
// they appear.
func familiesOf(recs []*Recording) []*Family {
	var families []*Family
	seen := make(map[string]bool)
	for _, r := range recs {
		for i := range r.Families {
			f := &r.Families[i]
			if !seen[f.Name] && hasValue(f) {
				seen[f.Name] = true
				families = append(families, f)
			}
		}
	}
	return families
}

func hasValue(f *Family) bool {
	for _, s := range f.Series {
		for _, v := range s.Values {
			if !v.IsAbsent() {
				return true
			}
		}
	}
	return false
}

// Check returns the error with which WriteOpenMetrics would refuse the recordings, or nil.
func Check(recs ...*Recording) error {
	if err := check(recs); err != nil {
		return fmt.Errorf("OpenMetrics: %w", err)
	}
	return nil
}

// check returns the reason why the recordings can't be written and read back, or nil.
func check(recs []*Recording) error {
	sets := make(map[string]bool)
	owners := map[string]*Family{infoSample: {Name: infoFamily, Type: "info"}}
	names := map[string]bool{infoFamily: true}
	for _, r := range recs {
		set := inBraces(r.Labels)
		if sets[set] {
			return fmt.Errorf("two recordings have the labels %q; give each an endpoint of its own", set)
		}
		sets[set] = true
		if !slices.Equal(sortedNames(r.Labels), sortedNames(recs[0].Labels)) {
			return fmt.Errorf("recordings have different label names: %v and %v",
				sortedNames(recs[0].Labels), sortedNames(r.Labels))
		}
		if err := checkLabelSet(r.Labels); err != nil {
			return err
		}
		if err := checkTimes(r.Times); err != nil {
			return err
		}
		inThis := make(map[string]bool)
		for i := range r.Families {
			f := &r.Families[i]
			if inThis[f.Name] {
				return fmt.Errorf("%s: a recording holds the family twice", f.Name)
			}
			inThis[f.Name] = true
			if err := checkFamily(f, r); err != nil {
				return err
			}
			owner := owners[sampleName(f)]
			switch {
			case owner == nil && names[sampleName(f)], owner == nil && owners[f.Name] != nil,
				owner != nil && (owner.Name != f.Name || owner.Type != f.Type || owner.Unit != f.Unit):
				return fmt.Errorf("%s: the name, type or unit clashes with another family's", f.Name)
			case owner == nil:
				owners[sampleName(f)], names[f.Name] = f, true
			}
		}
	}
	return nil
}

func checkTimes(times []time.Time) error {
	if len(times) == 0 {
		return errors.New("a recording has no snapshot")
	}
	for i, t := range times {
		if s := t.Unix(); s < 0 || s > maxNanoUnix {
			return fmt.Errorf("snapshot at %v: not between 1970 and 2262", t)
		}
		if i > 0 && !t.After(times[i-1]) {
			return fmt.Errorf("snapshot at %v does not come after %v", t, times[i-1])
		}
	}
	return nil
}

func checkFamily(f *Family, r *Recording) error {
	switch {
	case !metricName.MatchString(f.Name):
		return fmt.Errorf("%q is no metric name", f.Name)
	case f.Type != "counter" && f.Type != "gauge":
		return fmt.Errorf("%s: type %q; a recording has counters and gauges", f.Name, f.Type)
	case f.Type == "counter" && strings.HasSuffix(f.Name, "_total"):
		return fmt.Errorf("%s: a counter's family is named without _total", f.Name)
	case f.Unit != "" && !strings.HasSuffix(f.Name, "_"+f.Unit):
		return fmt.Errorf("%s: the name does not end in the unit %q", f.Name, f.Unit)
	case !utf8.ValidString(f.Help):
		return fmt.Errorf("%s: the help text is not UTF-8", f.Name)
	}
	sets := make(map[string]bool)
	for _, s := range f.Series {
		set := inBraces(s.Labels)
		if sets[set] {
			return fmt.Errorf("%s%s: a recording holds the series twice", f.Name, set)
		}
		sets[set] = true
		if err := checkLabelSet(s.Labels); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		for name := range s.Labels {
			if _, clash := r.Labels[name]; clash {
				return fmt.Errorf("%s: recording and series both have a label %q", f.Name, name)
			}
		}
		if len(s.Values) != len(r.Times) {
			return fmt.Errorf("%s%s: %d values for %d snapshots", f.Name, set, len(s.Values), len(r.Times))
		}
		for _, v := range s.Values {
			if math.IsInf(float64(v), 0) {
				return fmt.Errorf("%s%s: a value is infinite", f.Name, set)
			}
		}
	}
	return nil
}

func checkLabelSet(labels map[string]string) error {
	for name, value := range labels {
		if !isLabelName(name) {
			return fmt.Errorf("%q is no label name", name)
		}
		if !utf8.ValidString(value) {
			return fmt.Errorf("label %s: %q is not UTF-8", name, value)
		}
	}
	return nil
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	escape     = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

// isLabelName says whether OpenMetrics allows the name; two underscores in front
// are reserved.
func isLabelName(name string) bool {
	return labelName.MatchString(name) && !strings.HasPrefix(name, "__")
}

func sortedNames(labels map[string]string) []string {
	return slices.Sorted(maps.Keys(labels))
}
