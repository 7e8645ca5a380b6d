package load

import (
	"net/netip"
	"strings"
)

// HTTP sends GET requests for one page to an HTTP/1.1 server.
type HTTP struct {
	Host string // value of the Host header; "" is the target's address
	Path string // "" is "/"
	Each bool   // a connection for each request, with Connection: close
}

// Name implements Exchange.
func (HTTP) Name() string { return "http" }

func (HTTP) network() string { return "tcp" }

func (h HTTP) lasting() bool { return !h.Each }

func (h HTTP) complete(target netip.AddrPort) (Exchange, error) {
	if h.Host == "" {
		h.Host = target.String()
	}
	if h.Path == "" {
		h.Path = "/"
	}
	switch {
	case !strings.HasPrefix(h.Path, "/") || !printable(h.Path):
		return nil, wrong("path %q must begin with / and be printable ASCII without spaces", h.Path)
	case !printable(h.Host):
		return nil, wrong("host %q must be printable ASCII without spaces", h.Host)
	}
	return h, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func (h HTTP) protocol() protocol {
	header := ""
	if h.Each {
		header = "Connection: close\r\n"
	}
	return httpProtocol{out: []byte("GET " + h.Path + " HTTP/1.1\r\nHost: " + h.Host + "\r\n" + header + "\r\n")}
}

type httpProtocol struct {
	out []byte // the request, byte for byte
}

func (h httpProtocol) request(uint64) []byte { return h.out }

func (h httpProtocol) feed(r *response, _ uint64, p []byte) (done bool, bad Kind) {
	used, done, bad := r.feed(p)
	if done && used < len(p) {
		return false, Malformed
	}
	return done, bad
}

func (h httpProtocol) stray() Kind { return Malformed }
