package text

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for name, test := range map[string]struct{ in, line, text string }{
		"plain words":           {"größer → 1.5×", "größer → 1.5×", "größer → 1.5×"},
		"lines and tabs":        {"a\tb\r\nc\n", "a b  c ", "a\tb \nc\n"},
		"colour":                {"\x1b[31mred\x1b[0m", "?[31mred?[0m", "?[31mred?[0m"},
		"a title":               {"\x1b]0;owned\a", "?]0;owned?", "?]0;owned?"},
		"one byte of C1":        {"a\x9b2Jb", "a?2Jb", "a?2Jb"},
		"C1 as UTF-8":           {"a\u009b2Jb", "a?2Jb", "a?2Jb"},
		"backspace and delete":  {"a\b\x7fb", "a??b", "a??b"},
		"direction of the text": {"a\u202eb", "a?b", "a?b"},
		"line separators":       {"a\u2028b\u2029c", "a?b?c", "a?b?c"},
	} {
		if got := SafeLine(test.in); got != test.line {
			t.Errorf("%s: line %q, want %q", name, got, test.line)
		}
		if got := Safe(test.in); got != test.text {
			t.Errorf("%s: text %q, want %q", name, got, test.text)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"":               "''",
		"a-b_c/d.e:1@f":  "a-b_c/d.e:1@f",
		"two words":      "'two words'",
		"it's":           `'it'\''s'`,
		"$(rm -rf x)":    "'$(rm -rf x)'",
		"~/x":            "'~/x'",
		"a;b|c&d>e*f?g!": "'a;b|c&d>e*f?g!'",
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "a\tb\r\nc\n", "\x1b[2J", "\x9b", "\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, text := SafeLine(s), Safe(s)
		if !utf8.ValidString(text) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q: %q", s, line)
		}
		if got := SafeLine(text); got != line {
			t.Errorf("%q: the lines of the text are %q, and the line is %q", s, got, line)
		}
		if strings.Count(text, "\n") != strings.Count(s, "\n") {
			t.Errorf("%q: %q has other lines", s, text)
		}
	})
}

// TestSafeWriter: whatever the writes cut up, the text comes out as Safe returns it.
func TestSafeWriter(t *testing.T) {
	const in = "größer\x1b[31m\u009b\u202e \U0001F600\n"
	for size := 1; size <= len(in); size++ {
		var out strings.Builder
		w := SafeWriter(&out)
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, n, err)
			}
			rest = rest[n:]
		}
		if out.String() != Safe(in) {
			t.Errorf("pieces of %d: %q, want %q", size, out.String(), Safe(in))
		}
	}
}

// TestEncodeJSON: no control character is in the text, and the value reads back.
func TestEncodeJSON(t *testing.T) {
	const in = "a\x1b\x7f\u009b\u202e\u2028\U000E0001 größer"
	var out strings.Builder
	if err := EncodeJSON(&out, in); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != in {
		t.Errorf("%q reads back as %q (%v)", out.String(), back, err)
	}
	if text := strings.TrimSuffix(out.String(), "\n"); Safe(text) != text {
		t.Errorf("control characters in %q", text)
	}
}
