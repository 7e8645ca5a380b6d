package transfer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// ServedSchema names Served's form.
const ServedSchema = "cnibench/serve-http3/1"

// Served is what the HTTP/3 server prints when it ends.
type Served struct {
	Schema    string `json:"schema"`
	Transfers int64  `json:"transfers"` // whole files written
	// GSO says that all packets were sent with the kernel's segmentation of UDP
	// (UDP_SEGMENT): one system call and one walk through the stack for many packets.
	GSO bool `json:"gso"`
	// UDP is the send buffer that the kernel granted the server's socket.
	UDP *UDP `json:"udp,omitempty"`
}

// HTTP3Server serves one file over HTTP/3 at every path.
type HTTP3Server struct {
	File      string
	Listen    string // address and port
	Cert, Key string // PEM files

	whole, plain atomic.Int64 // transfers, and those of them without GSO
}

type connKey struct{}

// Serve serves until ctx ends. It calls ready once it listens. All connections share
// the server's socket.
func (s *HTTP3Server) Serve(ctx context.Context, ready func()) (Served, error) {
	cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return Served{}, err
	}
	addr, err := net.ResolveUDPAddr("udp", s.Listen)
	if err != nil {
		return Served{}, err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return Served{}, err
	}
	defer func() { _ = conn.Close() }() // nothing is on its way when it serves no more
	server := &http3.Server{
		Handler:    http.HandlerFunc(s.handle),
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}),
		QUICConfig: &quic.Config{MaxIdleTimeout: http3Idle},
		ConnContext: func(ctx context.Context, q *quic.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, q)
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	ready()
	if err := server.Serve(conn); err != nil && !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return Served{}, err
	}
	whole := s.whole.Load()
	return Served{Schema: ServedSchema, Transfers: whole, GSO: whole > 0 && s.plain.Load() == 0, UDP: udpOf(conn, sendBuffer)}, nil
}

func (s *HTTP3Server) handle(w http.ResponseWriter, r *http.Request) {
	f, err := os.Open(s.File)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(info.Size()))
	buf := make([]byte, 64<<10)
	var sent int64
	for sent < info.Size() {
		n, err := f.Read(buf)
		if err != nil {
			return // the client sees the missing bytes
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
		sent += int64(n)
	}
	s.whole.Add(1)
	if q, ok := r.Context().Value(connKey{}).(*quic.Conn); !ok || !q.ConnectionState().GSO {
		s.plain.Add(1)
	}
}
