package sysmon

import (
	"bufio"
	"fmt"
	"io"
	"iter"
)

// StreamOpenMetrics writes one recording as WriteOpenMetrics does, but takes its families
// one after the other, so that a long recording need not be in memory. Labels and times
// are those of head. After the times, and after every family, it flushes the text to w
// and calls part. A text that ends at such a place lacks only its last line,
// EndOpenMetrics.
func StreamOpenMetrics(w io.Writer, head *Recording, families iter.Seq[Family], part func() error) error {
	bare := *head
	bare.Families = nil
	if err := Check(&bare); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 64<<10)
	flush := func() error {
		if err := b.Flush(); err != nil {
			return err
		}
		return part()
	}
	writeTimes(b, &bare)
	if err := flush(); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for f := range families {
		bare.Families = []Family{f}
		if err := Check(&bare); err != nil {
			return err
		}
		if seen[f.Name] {
			return fmt.Errorf("OpenMetrics: %s: a recording holds the family twice", f.Name)
		}
		seen[f.Name] = true
		if !hasValue(&f) {
			continue
		}
		writeFamily(b, &f, []*Recording{&bare})
		if err := flush(); err != nil {
			return err
		}
	}
	b.WriteString(EndOpenMetrics)
	return b.Flush()
}

// EndOpenMetrics is the last line of a complete text.
const EndOpenMetrics = "# EOF\n"

func writeTimes(b *bufio.Writer, recs ...*Recording) {
	fmt.Fprintf(b, "# TYPE %s info\n# HELP %s %s\n", infoFamily, infoFamily, infoHelp)
	for _, r := range recs {
		head := infoSample + inBraces(r.Labels)
		for _, t := range r.Times {
			writePoint(b, head, 1, t)
		}
	}
}
