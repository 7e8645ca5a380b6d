package sysmon

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxCells bounds what a file can make a reader allocate: series × times.
const maxCells = 1 << 25

// ReadOpenMetrics reads a text of WriteOpenMetrics. It also reads other OpenMetrics texts
// of counters and gauges if every sample has a timestamp, and returns them as one recording
// without labels. An error contains the line's number. A text without # EOF was cut off and
// gives io.ErrUnexpectedEOF.
func ReadOpenMetrics(r io.Reader) ([]*Recording, error) { return ReadOpenMetricsUpTo(r, maxCells) }

// ReadOpenMetricsUpTo is ReadOpenMetrics for at most that many values (series × times);
// absent values count.
func ReadOpenMetricsUpTo(r io.Reader, cells int) ([]*Recording, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	p := omReader{seen: make(map[string]bool)}
	n, ended := 0, false
	for line := range strings.Lines(string(b)) {
		n++
		line, whole := strings.CutSuffix(line, "\n")
		switch {
		case ended:
			err = errors.New("text after # EOF")
		case line == "# EOF":
			ended = true // its own line feed is optional
		case !whole:
			err = io.ErrUnexpectedEOF
		case !utf8.ValidString(line):
			err = errors.New("not UTF-8")
		case strings.HasPrefix(line, "#"):
			err = p.descriptor(line)
		default:
			err = p.sample(line)
		}
		if err != nil {
			return nil, fmt.Errorf("OpenMetrics: line %d: %w", n, err)
		}
	}
	if !ended {
		return nil, fmt.Errorf("OpenMetrics: no # EOF after line %d; the file was cut off: %w", n, io.ErrUnexpectedEOF)
	}
	recs, err := p.recordings(cells)
	if err != nil {
		return nil, fmt.Errorf("OpenMetrics: %w", err)
	}
	return recs, nil
}

type omReader struct {
	seen   map[string]bool // names of families so far
	family Family          // the family whose lines are being read, without series
	points bool            // the family has had samples
	info   bool            // the text began with the info family
	names  []string        // of the recordings' labels, from the info family
	recs   []*omRecording
}

type omRecording struct {
	labels   map[string]string
	times    []int64 // Unix nanoseconds; from the info family, else empty
	families []*omFamily
}

type omFamily struct {
	Family
	series map[string]*omSeries
	order  []*omSeries
}

type omSeries struct {
	labels map[string]string
	points []omPoint
}

type omPoint struct {
	nanos int64
	value Value
}

// descriptor reads a # TYPE, # UNIT or # HELP line.
func (p *omReader) descriptor(line string) error {
	parts := strings.SplitN(line, " ", 4)
	if len(parts) < 3 || parts[0] != "#" || !metricName.MatchString(parts[2]) {
		return fmt.Errorf("%q is no # TYPE, # UNIT, # HELP or # EOF", line)
	}
	name, value := parts[2], ""
	if len(parts) == 4 {
		value = parts[3]
	}
	if name != p.family.Name || p.points {
		if p.seen[name] {
			return fmt.Errorf("family %s appears a second time: its lines must be together, descriptions first", name)
		}
		p.seen[name] = true
		p.family, p.points = Family{Name: name}, false
	}
	switch {
	case parts[1] == "TYPE" && p.family.Type == "":
		if value != "counter" && value != "gauge" && (value != "info" || name != infoFamily) {
			return fmt.Errorf("%s: type %q; only counters and gauges are read", name, value)
		}
		p.family.Type = value
	case parts[1] == "UNIT" && p.family.Unit == "":
		p.family.Unit = value
	case parts[1] == "HELP" && p.family.Help == "":
		p.family.Help = unescape(value)
	default:
		return fmt.Errorf("%s: %s unknown or given twice", name, parts[1])
	}
	return nil
}

// sample reads a line such as: name_total{a="b"} 1.5 1700000000.25
func (p *omReader) sample(line string) error {
	i := strings.IndexAny(line, "{ ")
	if i < 0 {
		return fmt.Errorf("%q is no sample", line)
	}
	name, rest := line[:i], line[i:]
	labels := map[string]string{}
	if rest[0] == '{' {
		var err error
		if rest, err = readLabels(rest[1:], labels); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fields := strings.Split(rest, " ") // "", value, timestamp
	if len(fields) != 3 || fields[0] != "" {
		return fmt.Errorf("%s: want a value and a timestamp after single spaces, and nothing more", name)
	}
	value, err := strconv.ParseFloat(fields[1], 64)
	if err != nil || math.IsInf(value, 0) {
		return fmt.Errorf("%s: value %q", name, fields[1])
	}
	nanos, err := parseTimestamp(fields[2])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.points = true
	switch {
	case p.family.Type == "info" && name == infoSample:
		return p.infoPoint(labels, value, nanos)
	case (p.family.Type == "counter" || p.family.Type == "gauge") && name == sampleName(&p.family):
		return p.point(labels, omPoint{nanos, Value(value)})
	}
	return fmt.Errorf("%s: not a sample of the family %q of type %q above it", name, p.family.Name, p.family.Type)
}

func (p *omReader) infoPoint(labels map[string]string, value float64, nanos int64) error {
	if !p.info && len(p.recs) > 0 {
		return fmt.Errorf("%s must be the first family", infoFamily)
	}
	if value != 1 {
		return fmt.Errorf("%s: value %v, want 1", infoSample, value)
	}
	names := sortedNames(labels)
	if p.info && !slices.Equal(names, p.names) {
		return fmt.Errorf("%s: label names differ", infoSample)
	}
	p.info, p.names = true, names
	rec := p.recording(labels)
	if rec == nil {
		rec = &omRecording{labels: labels}
		p.recs = append(p.recs, rec)
	} else if rec != p.recs[len(p.recs)-1] {
		return fmt.Errorf("%s%s appears a second time: its points must be together", infoSample, inBraces(labels))
	}
	if n := len(rec.times); n > 0 && nanos <= rec.times[n-1] {
		return fmt.Errorf("%s: timestamps must grow", infoSample)
	}
	rec.times = append(rec.times, nanos)
	return nil
}

// recording returns the recording whose labels are all contained in labels, or nil.
func (p *omReader) recording(labels map[string]string) *omRecording {
	for i := len(p.recs) - 1; i >= 0; i-- {
		if contains(labels, p.recs[i].labels) {
			return p.recs[i]
		}
	}
	return nil
}

func (p *omReader) point(labels map[string]string, pt omPoint) error {
	if !p.info && len(p.recs) == 0 {
		p.recs = append(p.recs, &omRecording{})
	}
	for _, name := range p.names {
		if _, ok := labels[name]; !ok {
			return fmt.Errorf("%s: the label %s, which all recordings have, is missing", p.family.Name, name)
		}
	}
	rec := p.recording(labels)
	if rec == nil {
		return fmt.Errorf("%s%s belongs to no recording of %s", p.family.Name, inBraces(labels), infoFamily)
	}
	maps.DeleteFunc(labels, func(name, _ string) bool { return slices.Contains(p.names, name) })
	var f *omFamily
	if n := len(rec.families); n > 0 && rec.families[n-1].Name == p.family.Name {
		f = rec.families[n-1]
	} else {
		f = &omFamily{Family: p.family, series: make(map[string]*omSeries)}
		rec.families = append(rec.families, f)
	}
	set := inBraces(labels)
	s := f.series[set]
	if s == nil {
		s = &omSeries{labels: labels}
		f.series[set] = s
		f.order = append(f.order, s)
	}
	if n := len(s.points); n > 0 && pt.nanos <= s.points[n-1].nanos {
		return fmt.Errorf("%s%s: timestamps must grow", p.family.Name, set)
	}
	s.points = append(s.points, pt)
	return nil
}

func (p *omReader) recordings(left int) ([]*Recording, error) {
	recs := make([]*Recording, 0, len(p.recs))
	maximum := left
	for _, from := range p.recs {
		times := from.times
		if !p.info {
			times = from.allTimes()
		}
		rec := &Recording{Labels: from.labels, Times: make([]time.Time, len(times))}
		for i, nanos := range times {
			rec.Times[i] = time.Unix(0, nanos).UTC()
		}
		for _, ff := range from.families {
			f := ff.Family
			for _, s := range ff.order {
				if left -= len(times); left < 0 {
					return nil, fmt.Errorf("more than %d series × times", maximum)
				}
				values, err := s.spread(times)
				if err != nil {
					return nil, fmt.Errorf("%s%s: %w", f.Name, inBraces(s.labels), err)
				}
				if len(s.labels) == 0 {
					s.labels = nil
				}
				f.Series = append(f.Series, Series{Labels: s.labels, Values: values})
			}
			rec.Families = append(rec.Families, f)
		}
		recs = append(recs, rec)
	}
	return recs, check(recs)
}

// allTimes returns the times of all series, sorted, each once.
func (r *omRecording) allTimes() []int64 {
	var times []int64
	for _, f := range r.families {
		for _, s := range f.order {
			for _, pt := range s.points {
				times = append(times, pt.nanos)
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// spread returns a value for each of the times; both points and times are in ascending
// order.
func (s *omSeries) spread(times []int64) ([]Value, error) {
	values := make([]Value, len(times))
	points := s.points
	for i, nanos := range times {
		values[i] = Absent
		if len(points) > 0 && points[0].nanos == nanos {
			values[i] = points[0].value
			points = points[1:]
		}
	}
	if len(points) > 0 {
		return nil, fmt.Errorf("there is no snapshot at the time of a point, %d ns", points[0].nanos)
	}
	return values, nil
}

// readLabels reads a="b",c="d"} into labels and returns what follows.
func readLabels(s string, labels map[string]string) (rest string, err error) {
	if rest, ok := strings.CutPrefix(s, "}"); ok {
		return rest, nil
	}
	for {
		name, after, ok := strings.Cut(s, `="`)
		if !ok || !isLabelName(name) {
			return "", errors.New("malformed label set")
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return "", fmt.Errorf("label %s: no closing quote", name)
		}
		if _, twice := labels[name]; twice {
			return "", fmt.Errorf("label %s twice", name)
		}
		labels[name] = unescape(after[:end])
		s = after[end+1:]
		if rest, ok := strings.CutPrefix(s, "}"); ok {
			return rest, nil
		}
		if s, ok = strings.CutPrefix(s, ","); !ok {
			return "", fmt.Errorf("after label %s: neither , nor }", name)
		}
	}
}

// unescape reverses escape. A backslash before any other character stands for itself.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return strings.Clone(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case 'n':
				b.WriteByte('\n')
				i++
				continue
			case '\\', '"':
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseTimestamp reads Unix seconds and returns nanoseconds. Decimal digits are read
// exactly; a float64 could not hold them.
func parseTimestamp(s string) (nanos int64, err error) {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseUint(whole, 10, 63)
	if err == nil && isDigits(fraction) && seconds <= maxNanoUnix {
		fraction = (fraction + "000000000")[:9]
		n, err := strconv.ParseUint(fraction, 10, 63)
		return int64(seconds)*1e9 + int64(n), err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= maxNanoUnix) {
		return 0, fmt.Errorf("timestamp %q", s)
	}
	return int64(f*1e6) * 1000, nil
}

// maxNanoUnix keeps nanoseconds within an int64: the year 2262.
const maxNanoUnix = math.MaxInt64/1_000_000_000 - 1

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
