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
	samples   []Sample
	lines     []int   // the line of each sample
	end       int64   // bytes before the first bad line, or of the whole file
	cut       bool    // the last line is a sample without its newline
	bad       []Fault // lines that hold no sample
	badInside bool    // lines follow the first bad line
}

// parseSamples reads the samples, and makes a fault of every line that holds no sample. It
// returns an error if reading fails, if a newer cnibench wrote a line (ErrVersion), or if
// the samples take more memory than is left. In the last two cases the lines are not
// damaged: without them, a part of the run would be taken for the whole run.
func parseSamples(r io.Reader, left *budget) (*parsed, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	p := &parsed{}
	for line := 1; ; line++ {
		text, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLongLine) {
			return nil, err
		}
		if len(text) == 0 { // the end: even an empty line has its newline
			if len(p.bad) > 0 && !p.badInside {
				p.bad[0].Next = setAside
			}
			return p, nil
		}
		whole := text[len(text)-1] == '\n'
		if len(bytes.TrimSpace(text)) > 0 {
			if !left.take(inMemory * int64(len(text))) {
				return nil, fmt.Errorf("line %d: %w", line, errBudget)
			}
			s, bad := decodeSample(text)
			if errors.Is(err, errLongLine) {
				bad = err
			}
			var newer *newerError
			if errors.As(bad, &newer) {
				return nil, fmt.Errorf("line %d: %w", line, bad)
			}
			if bad != nil {
				if _, err := br.Peek(1); len(p.bad) == 0 {
					p.badInside = err == nil
				}
				if len(p.bad) < maxBad {
					p.bad = append(p.bad, badLine(line, bad, whole))
				}
				continue
			}
			p.samples = append(p.samples, *s)
			p.lines = append(p.lines, line)
			p.cut = !whole
		}
		if len(p.bad) == 0 {
			p.end += int64(len(text))
		}
	}
}

// maxBad is the largest number of bad lines that become faults. In a file of another
// kind every line is bad.
const maxBad = 10_000

// MendLine is the next step for a bad line that Resume refuses.
const MendLine = "Put the line right, or take it out; then `cnibench run --resume` measures that sample again."

// setAside is the next step for a bad line at the end of the file.
const setAside = "Go on with `cnibench run --resume`: it moves the line aside and measures that sample again."

func badLine(line int, err error, whole bool) Fault {
	f := Fault{File: samplesFile, Line: line, Text: fmt.Sprintf("bad sample (%v); it is left out, the others count", err),
		Next: MendLine}
	if !whole && !errors.Is(err, errLongLine) {
		f.Text = fmt.Sprintf("half-written sample (%v); it does not count", err)
		f.Next = setAside
	}
	return f
}

var errLongLine = fmt.Errorf("line longer than %d bytes", maxLine)

// readLine returns the next line with its newline; the last line may lack the newline. A
// line over maxLine is read to its end, but readLine returns only its beginning, with
// errLongLine.
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

// decodeSample reads a sample line of any version up to SampleSchema. It returns an error
// unless the sample has a contender, a step, a round, a verdict, and a number for every
// metric.
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
	case s.Round < 1 || s.Round > MaxRounds:
		return nil, fmt.Errorf("round %d; rounds are 1 to %d", s.Round, MaxRounds)
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
