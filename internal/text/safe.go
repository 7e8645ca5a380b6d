package text

import (
	"strings"
	"unicode"
)

// SafeLine returns s on one line, without what could move a cursor, change colours or
// turn the direction of the text: line breaks and tabs become spaces, the rest
// question marks.
func SafeLine(s string) string { return strings.Map(inLine, s) }

// Safe is SafeLine for text of several lines, such as names out of files, messages of a
// cluster, or what a program of a node printed: line feeds and tabs stay.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return inLine(r)
	}, s)
}

// ShellWord returns s as one word of a POSIX shell's command line, quoted where that is
// needed. It is not fit for a terminal before SafeLine.
func ShellWord(s string) string {
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
