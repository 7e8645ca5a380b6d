package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parsed is what parseSamples found in samples.jsonl.
type parsed struct {
	samples []Sample
	lines   []int // the line of each sample
	end     int64 // length of the good part, up to the end of its last line
	open    bool  // the last good line lacks its newline
	bad     *Fault
	more    bool // there are lines after the bad one
}

// parseSamples reads samples up to the first bad line, which it names. An
// error is one of reading, never of the contents.
func parseSamples(r io.Reader) (*parsed, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	p := &parsed{}
	for line := 1; ; line++ {
		text, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLongLine) {
			return nil, err
		}
		if len(text) == 0 { // the end: even an empty line has its newline
			return p, nil
		}
		whole := text[len(text)-1] == '\n'
		if len(bytes.TrimSpace(text)) > 0 {
			s, bad := decodeSample(text)
			if errors.Is(err, errLongLine) {
				bad = err
			}
			if bad != nil {
				_, err := br.Peek(1)
				p.more = err == nil
				p.bad = &Fault{File: samplesFile, Line: line, Text: badLine(bad, whole)}
				return p, nil
			}
			p.samples = append(p.samples, *s)
			p.lines = append(p.lines, line)
			p.open = !whole
		}
		p.end += int64(len(text))
	}
}

func badLine(err error, whole bool) string {
	if !whole && !errors.Is(err, errLongLine) {
		return fmt.Sprintf("half-written sample (%v); it does not count", err)
	}
	return fmt.Sprintf("bad sample (%v); reading stops here", err)
}

var errLongLine = fmt.Errorf("line longer than %d bytes", maxLine)

// readLine returns the next line with its newline, which the last may lack.
// Of a line over the limit it reads up to its end and returns the beginning.
func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		} else {
			long = true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return line, errLongLine
		default:
			return line, err
		}
	}
}

// decodeSample reads a sample line of any version that there ever was. What
// it accepts has an identity, a verdict and a number for every metric.
func decodeSample(line []byte) (*Sample, error) {
	if err := checkSchema(line, SampleSchema); err != nil {
		return nil, err
	}
	s := &Sample{}
	if err := json.Unmarshal(line, s); err != nil {
		return nil, err
	}
	switch {
	case s.Contender == "":
		return nil, errors.New("no contender")
	case s.Step == "":
		return nil, errors.New("no step")
	case s.Round < 1:
		return nil, fmt.Errorf("round %d", s.Round)
	case s.Verdict != Valid && s.Verdict != Invalid:
		return nil, fmt.Errorf("verdict %.60q", s.Verdict)
	}
	// null would have become 0, and a missing value is never a zero.
	var values struct {
		Metrics map[string]*float64 `json:"metrics"`
	}
	if err := json.Unmarshal(line, &values); err != nil {
		return nil, err
	}
	for name, v := range values.Metrics {
		if v == nil {
			return nil, fmt.Errorf("metric %.60q has no value", name)
		}
	}
	return s, nil
}
