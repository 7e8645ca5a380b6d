package importer

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// value is a number of a summary file and where it stands.
type value struct {
	number float64
	known  bool   // false: text is no number
	text   string // as it stands in the file
	file   string
	line   int
}

// values are numbers by key: DTS_BW, DTS_CLIENT_SYSTEM, …
type values map[string]value

// complaint is something wrong at a line.
type complaint struct {
	line int
	text string
}

const maxLine = 64 << 10

// parseKeyValues reads lines such as DTS_BW=23002700735.369984. What is no
// number stays as an unknown value with its text; of a key that comes again
// with another value the first counts.
func parseKeyValues(r io.Reader) (values, []complaint) {
	vs := values{}
	var wrong []complaint
	err := eachLine(r, func(n int, line string) {
		if strings.TrimSpace(line) == "" {
			return
		}
		key, text, ok := strings.Cut(line, "=")
		key, text = strings.TrimSpace(key), strings.TrimSpace(text)
		if !ok || key == "" {
			wrong = append(wrong, complaint{n, fmt.Sprintf("%q is no KEY=VALUE; the line is left out", line)})
			return
		}
		if first, again := vs[key]; again {
			if first.text != text {
				wrong = append(wrong, complaint{n, fmt.Sprintf("%s is %q here and %q on line %d, which counts", key, text, first.text, first.line)})
			}
			return
		}
		v := parseNumber(text)
		v.line = n
		vs[key] = v
	})
	if err != nil {
		wrong = append(wrong, complaint{0, "not read to its end: " + err.Error()})
	}
	return vs, wrong
}

// parseNumber takes finite decimal numbers and nothing else: no NaN, no
// infinity, no hexadecimal, no underscores.
func parseNumber(text string) value {
	f, err := strconv.ParseFloat(text, 64)
	known := err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && !strings.ContainsAny(text, "xX_")
	return value{number: f, known: known, text: text}
}

// why returns what is wrong with an unknown value.
func (v value) why() string {
	switch v.text {
	case "":
		return "no value"
	case "null":
		return "null instead of a number: the tool gave no result"
	}
	return fmt.Sprintf("%q, which is no finite number", v.text)
}

// eachLine calls do for every line, without its end. Errors: of reading, and
// bufio.ErrTooLong.
func eachLine(r io.Reader, do func(n int, line string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		do(n, lines.Text())
	}
	return lines.Err()
}

// parseSummary reads results.prom, lines such as
//
//	benchmark_cpu_seconds{id="x",run="1",test="dts",role="client",mode="system"} 0.44 1704067200000
//
// of one configuration, and gives its values by run and by the keys of the
// .results files.
func parseSummary(r io.Reader, id string) (map[int]values, []complaint) {
	runs := map[int]values{}
	var wrong []complaint
	err := eachLine(r, func(n int, line string) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			return
		}
		say := func(text string, args ...any) {
			wrong = append(wrong, complaint{n, fmt.Sprintf(text, args...)})
		}
		open, end := strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')
		if open < 0 || end < open {
			say("%q is no sample; the line is left out", line)
			return
		}
		labels, ok := parseLabels(line[open+1 : end])
		run, err := strconv.Atoi(labels["run"])
		key := summaryKey(line[:open], labels)
		if !ok || err != nil || key == "" {
			say("%q is no sample that is known; the line is left out", line)
			return
		}
		if labels["id"] != id {
			say("%s of run %d is of %q instead of %q; the line is left out", key, run, labels["id"], id)
			return
		}
		// Value and time stand behind the labels; without the value the time is all.
		text := ""
		if fields := strings.Fields(line[end+1:]); len(fields) > 1 {
			text = fields[0]
		}
		if runs[run] == nil {
			runs[run] = values{}
		}
		if first, again := runs[run][key]; again {
			if first.text != text {
				say("%s of run %d is %q here and %q on line %d, which counts", key, run, text, first.text, first.line)
			}
			return
		}
		v := parseNumber(text)
		v.line = n
		runs[run][key] = v
	})
	if err != nil {
		wrong = append(wrong, complaint{0, "not read to its end: " + err.Error()})
	}
	return runs, wrong
}

// summaryKey is the .results key of a sample of results.prom, "" if unknown.
func summaryKey(metric string, labels map[string]string) string {
	test := strings.ToUpper(labels["test"])
	side := test + "_" + strings.ToUpper(labels["role"])
	switch metric {
	case "benchmark_cpu_seconds":
		return side + "_" + strings.ToUpper(labels["mode"])
	case "benchmark_mem_bytes":
		return side + "_MEM"
	case "benchmark_iperf_bandwidth_bits_per_second":
		return test + "_BW"
	case "benchmark_iperf_retransmits_count":
		return test + "_RTS"
	case "benchmark_iperf_jitter_milliseconds":
		return test + "_JITTER"
	case "benchmark_iperf_lost_percent":
		return test + "_LOST"
	}
	return ""
}

// parseLabels reads a="b",c="d"; ok says that all of it is that.
func parseLabels(text string) (labels map[string]string, ok bool) {
	labels = map[string]string{}
	for text != "" {
		name, rest, found := strings.Cut(text, `="`)
		if !found {
			return labels, false
		}
		var b strings.Builder
		i := 0
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
				if rest[i] == 'n' {
					b.WriteByte('\n')
					continue
				}
			}
			b.WriteByte(rest[i])
		}
		if i == len(rest) || name == "" {
			return labels, false
		}
		labels[strings.TrimSpace(name)] = b.String()
		text = strings.TrimPrefix(strings.TrimSpace(rest[i+1:]), ",")
	}
	return labels, true
}
