package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Everything that listens can stand behind a Service, with all its ports.
func TestPorts(t *testing.T) {
	for name, want := range map[string]string{
		"tcp_stream": "TCP/5201 TCP/5202", "tcp_rr": "TCP/7000",
		"tcp_bulk": "TCP/5301", "udp_bulk": "TCP/5301 UDP/5301",
		"http_get": "TCP/8080", "https_get": "TCP/8443", "http3_get": "UDP/8443", "scp_copy": "TCP/2222",
		"ftp_get": "TCP/2121 TCP/21200 TCP/21201 TCP/21202 TCP/21203 TCP/21204 TCP/21205 TCP/21206 TCP/21207",
	} {
		w, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var given map[string]any
		if name == "tcp_stream" {
			given = map[string]any{"streams": 2}
		}
		p, err := Complete(w.Info(), given)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, port := range w.(Serving).Ports(p) {
			got = append(got, fmt.Sprintf("%s/%d", port.Protocol, port.Number))
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}
