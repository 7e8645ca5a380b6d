package load

import "bytes"

// response reads one response from pieces of any size. Only HTTP/1.1 uses the fields
// other than size. The HTTP reader is strict: it wants a status line, header fields and
// CRLFs as in RFC 9112, one Content-Length, and nothing after the body. It allocates
// only when a header arrives in more than one piece.
type response struct {
	inBody bool
	status int
	left   int64  // body bytes still to come
	size   int64  // bytes read so far, header included
	close  bool   // the server will close the connection after this response
	part   []byte // the first part of a header that is not complete yet
}

// maxHeader is the longest header that is read.
const maxHeader = 16 << 10

var endOfHeader = []byte("\r\n\r\n")

// good says whether a complete response has a status of 2xx, or no status because its
// exchange is not HTTP.
func (r *response) good() bool { return r.status == 0 || r.status >= 200 && r.status <= 299 }

// reset makes r ready for the next response.
func (r *response) reset() {
	*r = response{part: r.part[:0]}
}

// feed reads the next bytes. It returns how many of them belong to the response, whether
// the response is now complete, and its error, if any. After an error or a complete
// response only reset may be called.
func (r *response) feed(p []byte) (used int, done bool, bad Kind) {
	if !r.inBody {
		block := p
		if len(r.part) > 0 {
			r.part = append(r.part, p...)
			block = r.part
		}
		end := bytes.Index(block, endOfHeader)
		if end < 0 {
			if len(block) >= maxHeader {
				return 0, false, Malformed
			}
			if len(r.part) == 0 {
				r.part = append(r.part, p...)
			}
			r.size += int64(len(p))
			return len(p), false, ""
		}
		length := end + len(endOfHeader)
		if length > maxHeader {
			return 0, false, Malformed
		}
		if bad := r.header(block[:end+2]); bad != "" {
			return 0, false, bad
		}
		used = length - (len(block) - len(p))
		r.part = r.part[:0]
		r.inBody = true
	}
	body := int(min(r.left, int64(len(p)-used)))
	r.left -= int64(body)
	used += body
	r.size += int64(used)
	return used, r.left == 0, ""
}

// header reads the lines of h, each with its CRLF, and sets status and left.
func (r *response) header(h []byte) Kind {
	const version = "HTTP/1.1 "
	line, h := cutLine(h)
	if len(line) < len(version)+4 || string(line[:len(version)]) != version || line[len(version)+3] != ' ' {
		return Malformed
	}
	status, ok := decimal(line[len(version) : len(version)+3])
	if !ok || status < 200 { // the requests ask for no interim response
		return Malformed
	}
	r.status = int(status)
	length := int64(-1)
	for len(h) > 0 {
		line, h = cutLine(h)
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || !isToken(line[:colon]) {
			return Malformed
		}
		name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
		switch {
		case isName(name, "content-length"):
			n, ok := decimal(value)
			if !ok || length >= 0 {
				return Malformed
			}
			length = n
		case isName(name, "transfer-encoding"):
			return Chunked
		case isName(name, "connection"):
			r.close = isName(value, "close")
		}
	}
	switch {
	case r.status == 204 || r.status == 304:
		r.left = 0
	case length < 0:
		return Malformed
	default:
		r.left = length
	}
	return ""
}

// cutLine cuts the first line off h. It returns an empty line for one that does not end
// in CRLF; header takes an empty line as malformed.
func cutLine(h []byte) (line, rest []byte) {
	i := bytes.IndexByte(h, '\n')
	if i < 0 {
		return nil, nil
	}
	if i == 0 || h[i-1] != '\r' || bytes.IndexByte(h[:i-1], '\r') >= 0 {
		return nil, h[i+1:]
	}
	return h[:i-1], h[i+1:]
}

// decimal reads up to 18 digits, which an int64 always holds.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// isName says whether b is the name, which is in lower case, regardless of case.
func isName(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// tokens are the characters of a header field's name (RFC 9110, 5.6.2).
var tokens = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokens[c] {
			return false
		}
	}
	return true
}
