package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

var localhost = netip.MustParseAddr("127.0.0.1")

// http3Server serves a file of size bytes until stop is called, which returns
// what the server reports.
func http3Server(t *testing.T, size int64) (url, ca string, stop func() (Served, error)) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	cert, key, err := Certificate(localhost)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cert": cert, "key": key} {
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path("data"), size); err != nil {
		t.Fatal(err)
	}
	port := freeUDPPort(t)
	s := HTTP3Server{File: path("data"), Listen: fmt.Sprintf("127.0.0.1:%d", port), Cert: path("cert"), Key: path("key")}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	var served Served
	go func() {
		defer close(ended)
		served, err = s.Serve(ctx, func() { close(ready) })
	}()
	select {
	case <-ready:
	case <-ended:
		t.Fatal(err)
	}
	stop = func() (Served, error) {
		cancel()
		<-ended
		return served, err
	}
	t.Cleanup(func() { _, _ = stop() })
	return "https://" + s.Listen + "/data", path("cert"), stop
}

func freeUDPPort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP(localhost.AsSlice())})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

func TestHTTP3(t *testing.T) {
	const size = 3 << 20
	url, ca, stop := http3Server(t, size)
	client, err := NewHTTP3(url, ca, size)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := client.Fetch(t.Context(), "")
		if err != nil || got.FirstByte <= 0 || got.Seconds < got.FirstByte {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if err := Verify(t.Context(), client, filepath.Join(t.TempDir(), "copy"), size); err != nil {
		t.Error(err)
	}
	client.FileBytes++
	if _, err := client.Fetch(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "3145728 bytes arrived instead of 3145729") {
		t.Errorf("another size: %v", err)
	}
	served, err := stop()
	if err != nil || served.Transfers != 4 || served.Schema != ServedSchema {
		t.Errorf("%+v, %v", served, err)
	}
	for at, u := range map[string]*UDP{"client": client.UDP, "server": served.UDP} {
		if u == nil && runtime.GOOS == "linux" || u != nil && (u.Buffer <= 0 || u.Wanted != 7<<20) {
			t.Errorf("the %s's buffer %+v", at, u)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Fetch(ctx, ""); err == nil {
		t.Error("a server that is gone served")
	}
}

// The first byte is that of the header, as with curl, however late the file
// follows. The file leaves only once the client has the header.
func TestHTTP3FirstByte(t *testing.T) {
	const late = 500 * time.Millisecond
	header := make(chan struct{})
	cert, key, err := Certificate(localhost)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP(localhost.AsSlice())})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server := &http3.Server{
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-header
			time.Sleep(late)
			_, _ = w.Write([]byte("file"))
		}),
	}
	go func() { _ = server.Serve(conn) }() // until it is closed
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := NewHTTP3("https://"+conn.LocalAddr().String()+"/", ca, 4)
	if err != nil {
		t.Fatal(err)
	}
	arrived := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: sync.OnceFunc(func() { close(header) })})
	got, err := client.Fetch(arrived, "")
	if err != nil || got.FirstByte <= 0 || got.Seconds-got.FirstByte < late.Seconds()/2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A server whose certificate is another one is not spoken with.
func TestHTTP3Certificate(t *testing.T) {
	url, _, _ := http3Server(t, 10)
	other, _, err := Certificate(localhost)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, other, 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := NewHTTP3(url, ca, 10)
	if err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := client.Fetch(t.Context(), ""); !errors.As(err, &unknown) && (err == nil || !strings.Contains(err.Error(), "x509")) {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(ca, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewHTTP3(url, ca, 10); err == nil || !strings.Contains(err.Error(), "no certificate in it") {
		t.Errorf("error %v", err)
	}
}

// A server that ends in the middle of a file is an error that says how far it
// came.
func TestHTTP3ServerEnds(t *testing.T) {
	const size = 512 << 20
	url, ca, stop := http3Server(t, 64<<20)
	client, err := NewHTTP3(url, ca, size)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _, _ = stop() })
	for {
		if _, err = client.Fetch(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "arrived instead of") {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("error %v", err)
	}
}

func TestCertificate(t *testing.T) {
	one, key, err := Certificate(localhost, netip.MustParseAddr("fd00::1"))
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := Certificate(localhost)
	if err != nil {
		t.Fatal(err)
	}
	if string(key) == string(other) {
		t.Error("two keys are one")
	}
	block, _ := pem.Decode(one)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	for host, valid := range map[string]bool{"127.0.0.1": true, "fd00::1": true, "127.0.0.2": false} {
		for _, wrong := range []time.Duration{0, -20 * 365 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} { // the clock of one side
			if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: time.Now().Add(wrong)}); (err == nil) != valid {
				t.Errorf("for %s, the clock wrong by %v: %v", host, wrong, err)
			}
		}
	}
}
