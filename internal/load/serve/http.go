package serve

import (
	"bytes"
	"strconv"
	"strings"
)

// HeaderBytes is the length of the header, from the status line to the blank
// line, of every response that cnibench serves or has nginx serve: that of
// the 2016 study.
const HeaderBytes = 250

// HTTPResponse is the whole response of size bytes, at least HeaderBytes.
func HTTPResponse(size int) []byte {
	body := size - HeaderBytes
	head := "HTTP/1.1 200 OK\r\nServer: cnibench\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(body) + "\r\nX-Pad: "
	const end = "\r\n\r\n"
	return []byte(head + strings.Repeat("x", HeaderBytes-len(head)-len(end)) + end + strings.Repeat("x", body))
}

// httpRequests counts the requests that end within b: each ends with a blank
// line. line is the length so far of the line that b goes on with; it is 0
// when a connection begins.
func httpRequests(line int, b []byte) (requests, rest int) {
	for {
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			return requests, line + len(b)
		}
		// Blank is "\n" or "\r\n". A lone byte before "\n" is taken for the "\r".
		if line+n <= 1 {
			requests++
		}
		line, b = 0, b[n+1:]
	}
}
