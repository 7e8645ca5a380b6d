package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// udpWanted is what quic-go asks the kernel for as a socket's buffers, bytes.
const udpWanted = 7 << 20

// http3Idle is how long a connection may hear nothing before it is given up.
const http3Idle = 5 * time.Second

// HTTP3 is the client of HTTP/3 with quic-go. Every transfer has a socket and a
// connection of its own, without resumption. The seconds of a transfer begin before its
// socket is made and end with the last byte; the first byte is that of the response's
// header, as with curl.
type HTTP3 struct {
	URL       string // https://ADDRESS:PORT/PATH
	CA        *x509.CertPool
	FileBytes int64
	// UDP is, after a Fetch, what the kernel granted the last socket.
	UDP *UDP
}

// NewHTTP3 returns a client that trusts only the certificates in a PEM file.
func NewHTTP3(url, caFile string, size int64) (*HTTP3, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", caFile)
	}
	return &HTTP3{URL: url, CA: pool, FileBytes: size}, nil
}

// Fetch implements Client.
func (h *HTTP3) Fetch(ctx context.Context, to string) (t Transfer, err error) {
	out := io.Discard
	if to != "" {
		f, err := os.Create(to)
		if err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	start := time.Now()
	client, closeAll, err := h.client()
	if err != nil {
		return t, err
	}
	defer closeAll()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return t, err
	}
	res, err := client.RoundTrip(req) // returns when the header is there
	t.FirstByte = time.Since(start).Seconds()
	if err != nil {
		return t, fmt.Errorf("%s: %w", h.URL, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return t, fmt.Errorf("%s: the server answers %s", h.URL, res.Status)
	}
	size, err := io.CopyBuffer(struct{ io.Writer }{out}, res.Body, make([]byte, 64<<10))
	t.Seconds = time.Since(start).Seconds()
	switch {
	case err != nil:
		return t, fmt.Errorf("%s: after %d bytes: %w", h.URL, size, err)
	case size != h.FileBytes:
		return t, wrongSize(size, h.FileBytes)
	}
	return t, nil
}

// client returns an HTTP client with a socket of its own.
func (h *HTTP3) client() (client *http3.Transport, closeAll func(), err error) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, nil, err
	}
	socket := &quic.Transport{Conn: conn}
	client = &http3.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: h.CA, MinVersion: tls.VersionTLS13, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:         &quic.Config{MaxIdleTimeout: http3Idle, HandshakeIdleTimeout: http3Idle},
		DisableCompression: true,
		Dial: func(ctx context.Context, addr string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			to, err := net.ResolveUDPAddr("udp", addr)
			if err != nil {
				return nil, err
			}
			q, err := socket.Dial(ctx, to, tlsConfig, config)
			if err == nil {
				h.UDP = udpOf(conn, receiveBuffer)
			}
			return q, err
		},
	}
	return client, func() {
		_ = client.Close() // what arrived is counted; the rest is the peer's loss
		_ = socket.Close()
		_ = conn.Close()
	}, nil
}

// udpOf asks the kernel for the size of one of the socket's buffers; nil is
// unknown.
func udpOf(conn syscall.Conn, b buffer) *UDP {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	size := 0
	if err := raw.Control(func(fd uintptr) { size = b.size(fd) }); err != nil || size <= 0 {
		return nil
	}
	return &UDP{Buffer: size, Wanted: udpWanted}
}
