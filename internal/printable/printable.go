// Package printable makes text that others wrote fit for a terminal: names out
// of files, a cluster's messages, what a node's program printed. It prints
// nothing itself and may depend on nothing. It is this file.
package printable

import (
	"strings"
	"unicode"
)

// Line is s on one line, without what could move a cursor, change colours or
// turn the direction of the text: line breaks and tabs become spaces, the rest
// question marks.
func Line(s string) string { return strings.Map(inLine, s) }

// Text is Line for text of several lines: line feeds and tabs stay.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return inLine(r)
	}, s)
}

// Word is s as one word of a POSIX shell's command line, quoted where that is
// needed. It is not fit for a terminal before Line.
func Word(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:@,=+%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// inLine is r, or what stands for it. Bytes that are no UTF-8 come as
// unicode.ReplacementChar: terminals take some of them for control characters.
func inLine(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), r == unicode.ReplacementChar:
		return '?'
	}
	return r
}
