package load

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestResponse(t *testing.T) {
	type outcome struct {
		Used   int
		Done   bool
		Bad    Kind
		Status int
		Close  bool
	}
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
	tests := []struct {
		name, in string
		want     outcome
	}{
		{"whole", ok, outcome{len(ok), true, "", 200, false}},
		{"no body", "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", outcome{37, true, "", 200, false}},
		{"no content by status", "HTTP/1.1 204 No Content\r\n\r\n", outcome{27, true, "", 204, false}},
		{"wrong status", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", outcome{40, true, "", 503, false}},
		{"empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", outcome{36, true, "", 200, false}},
		{"more than declared", ok + "d", outcome{len(ok), true, "", 200, false}},
		{"header only begun", "HTTP/1.1 200 OK\r\nConte", outcome{22, false, "", 0, false}},
		{"body only begun", ok[:len(ok)-1], outcome{len(ok) - 1, false, "", 200, false}},
		{"the server will close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", outcome{57, true, "", 200, true}},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", outcome{0, false, Chunked, 200, false}},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", outcome{0, false, Malformed, 200, false}},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", outcome{0, false, Malformed, 200, false}},
		{"signed length", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", outcome{0, false, Malformed, 200, false}},
		{"length beyond int64", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", outcome{0, false, Malformed, 200, false}},
		{"old version", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", outcome{0, false, Malformed, 0, false}},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\n", outcome{0, false, Malformed, 0, false}},
		{"bare line feed", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", outcome{0, false, Malformed, 0, false}},
		{"folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 0\r\n\r\n", outcome{0, false, Malformed, 200, false}},
		{"space before colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", outcome{0, false, Malformed, 200, false}},
		{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", outcome{0, false, Malformed, 0, false}},
		{"endless header", strings.Repeat("x", maxHeader), outcome{0, false, Malformed, 0, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r response
			used, done, bad := r.feed([]byte(tt.in))
			got := outcome{used, done, bad, r.status, r.close}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestReadFirst(t *testing.T) {
	tests := []struct{ name, in, err string }{
		{"in pieces", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", ""},
		{"short", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", io.ErrUnexpectedEOF.Error()},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "no usable response: chunked"},
		{"wrong status", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "status 404, want 2xx; check the path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			size, err := readFirst(iotest.OneByteReader(strings.NewReader(tt.in)), HTTP{}.protocol(), 1)
			if err == nil && (tt.err != "" || size != int64(len(tt.in))) || err != nil && (tt.err == "" || !strings.HasPrefix(err.Error(), tt.err)) {
				t.Errorf("size %d, error %v; want error %q", size, err, tt.err)
			}
		})
	}
}

// Whatever the pieces, the outcome is the same; and whatever is accepted is
// read by net/http with the same status and length.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), 5)
	f.Add([]byte("HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"), 1)
	f.Add([]byte("HTTP/1.1 503 Busy\r\nConnection: close\r\ncontent-length:\t0\r\n\r\nmore"), 40)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 20)
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		if len(in) > maxHeader || piece < 1 {
			t.Skip("the limit is the table's business")
		}
		var whole, parts response
		used, done, bad := whole.feed(in)
		if used < 0 || used > len(in) || done && bad != "" {
			t.Fatalf("used %d of %d, done %v, bad %q", used, len(in), done, bad)
		}
		usedParts, doneParts, badParts := 0, false, Kind("")
		for rest := in; len(rest) > 0 && !doneParts && badParts == ""; rest = in[usedParts:] {
			var n int
			n, doneParts, badParts = parts.feed(rest[:min(piece, len(rest))])
			usedParts += n
			if n == 0 && badParts == "" && !doneParts {
				t.Fatal("no progress")
			}
		}
		if done != doneParts || bad != badParts || done && (used != usedParts || whole.size != parts.size || whole.size != int64(used)) {
			t.Fatalf("whole: used %d size %d done %v bad %q; in pieces: used %d size %d done %v bad %q",
				used, whole.size, done, bad, usedParts, parts.size, doneParts, badParts)
		}
		if !done {
			return
		}
		std, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in[:used])), nil)
		if err != nil {
			t.Fatalf("accepted what net/http refuses: %v", err)
		}
		body, err := io.ReadAll(std.Body)
		if err != nil || std.StatusCode != whole.status || !bytes.HasSuffix(in[:used], body) {
			t.Fatalf("net/http reads status %d and %d bytes of body (%v), this status %d", std.StatusCode, len(body), err, whole.status)
		}
	})
}
