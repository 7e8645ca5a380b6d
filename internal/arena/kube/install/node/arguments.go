package node

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Linux refuses an argument of 128 KiB and more (MAX_ARG_STRLEN), and an API
// server an object of more than 1.5 MB: a long request is compressed and cut.
const (
	longestArgument = 96 << 10
	longestRequest  = 64 << 20 // uncompressed
	compressed      = "gzip"   // before the parts of a compressed request
)

// Arguments are the request as arguments of `agent node`.
func Arguments(req Request) ([]string, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	if len(text) <= longestArgument {
		return []string{string(text)}, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	list := []string{compressed}
	for rest := base64.StdEncoding.EncodeToString(b.Bytes()); rest != ""; {
		n := min(len(rest), longestArgument)
		list, rest = append(list, rest[:n]), rest[n:]
	}
	return list, nil
}

// ParseArguments is the inverse of Arguments.
func ParseArguments(arguments []string) (Request, error) {
	var req Request
	if len(arguments) == 0 {
		return req, errors.New("the request is missing")
	}
	var text io.Reader = strings.NewReader(arguments[0])
	if arguments[0] == compressed {
		parts := base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.Join(arguments[1:], "")))
		z, err := gzip.NewReader(parts)
		if err != nil {
			return req, fmt.Errorf("the request is not compressed as announced: %w", err)
		}
		text = z
	}
	if err := json.NewDecoder(io.LimitReader(text, longestRequest)).Decode(&req); err != nil {
		return req, fmt.Errorf("the request is no JSON: %w", err)
	}
	return req, nil
}
