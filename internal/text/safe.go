package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// SafeWriter returns a writer that passes text on to w as Safe returns the whole of it,
// however the writes cut it up.
func SafeWriter(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	part []byte // the begin of a character whose end has not come
}

func (p *writer) Write(text []byte) (int, error) {
	all := append(p.part, text...)
	end := len(all)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ { // a character that is cut off at the end waits for its rest
		if utf8.RuneStart(all[i]) && !utf8.FullRune(all[i:]) {
			end = i
		}
	}
	if _, err := io.WriteString(p.w, Safe(string(all[:end]))); err != nil {
		return 0, err
	}
	p.part = append([]byte(nil), all[end:]...)
	return len(text), nil
}

// SafeJSON returns JSON text in which the characters that Safe replaces are escaped: the
// values stay what they are.
func SafeJSON(text []byte) []byte {
	var out []byte
	written := 0
	for i, r := range string(text) {
		if r == unicode.ReplacementChar || r == '\n' || r == '\t' || r == '\r' || inLine(r) == r {
			continue
		}
		out = append(out, text[written:i]...)
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		written = i + utf8.RuneLen(r)
	}
	return append(out, text[written:]...)
}

// EncodeJSON writes the value as indented JSON, safe as of SafeJSON.
func EncodeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(SafeJSON(text.Bytes()))
	return err
}
