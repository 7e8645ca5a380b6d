package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// This file reads JSON as it lies in files: with a line of text around it, or with
// carriage returns in its strings.

// lineError is an error at a place in a file.
type lineError struct {
	line int // from 1; 0 is the whole file
	err  error
}

func (e *lineError) Error() string {
	if e.line == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

var errEmpty = errors.New("empty")

// around is the text before and after a JSON value, as one line; empty if there is none.
type around string

// cutJSON returns the JSON value in data, the text around it, and the text's number of
// lines before the value. Errors are *lineError: no value, or two values.
func cutJSON(data []byte) (value []byte, text around, above int, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, "", 0, &lineError{0, errEmpty}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	begin := 0
	for rest := data; !startsJSON(rest); above++ {
		_, after, more := bytes.Cut(rest, []byte("\n"))
		if !more {
			return nil, "", 0, &lineError{1, fmt.Errorf("no JSON: it begins %.60q", bytes.TrimSpace(firstLine(data)))}
		}
		rest, begin = after, len(data)-len(after)
	}
	decoder := json.NewDecoder(bytes.NewReader(data[begin:]))
	var whole json.RawMessage
	if decoder.Decode(&whole) != nil {
		return data[begin:], around(bytes.TrimSpace(data[:begin])), above, nil // its own error names the place
	}
	end := begin + int(decoder.InputOffset())
	after := bytes.TrimSpace(data[end:])
	if startsJSON(after) {
		return nil, "", 0, &lineError{lineAt(data, len(data)-len(bytes.TrimLeft(data[end:], " \t\r\n"))), errTwoValues}
	}
	lines := strings.Fields(string(data[:begin]) + " " + string(after))
	return data[begin:end], around(strings.Join(lines, " ")), above, nil
}

var errTwoValues = errors.New("a second JSON value: two tests in one file")

func startsJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r")
	return len(data) > 0 && data[0] == '{'
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return line
}

// lineAt is the line of an offset, from 1.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// decodeJSON decodes the JSON value in data, and returns the text around it. Errors are
// *lineError.
func decodeJSON(data []byte, into any) (around, error) {
	value, text, above, err := cutJSON(data)
	if err != nil {
		return "", err
	}
	return text, unmarshal(value, above, into)
}

// unmarshal decodes a value that stands below that many lines of text.
func unmarshal(data []byte, above int, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := -1
	switch {
	case errors.As(err, &syntax):
		offset = int(syntax.Offset)
		if strings.Contains(err.Error(), "unexpected end") {
			err = errors.New("cut off")
		}
	case errors.As(err, &kind):
		offset = int(kind.Offset)
		err = fmt.Errorf("%s: %s where something else belongs", cmp.Or(kind.Field, "the whole"), kind.Value)
	}
	if offset < 0 {
		return &lineError{0, err}
	}
	return &lineError{above + lineAt(data, offset), err}
}

// findDuplicate returns a key that stands more than once in the JSON object, or "".
func findDuplicate(object json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	seen := map[string]bool{}
	for decoder.More() {
		t, err := decoder.Token()
		key, is := t.(string)
		var skipped json.RawMessage
		if err != nil || !is || decoder.Decode(&skipped) != nil {
			return ""
		}
		if seen[key] {
			return key
		}
		seen[key] = true
	}
	return ""
}
