package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"strings"
	"testing"
)

func TestCertificates(t *testing.T) {
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.PEM) {
		t.Fatal("no certificate of the authority")
	}
	server, err := ca.Server([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, "api", "api.local")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("me", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		pair Pair
		host string
		use  x509.ExtKeyUsage
		good bool
	}{
		{"server by name", server, "api.local", x509.ExtKeyUsageServerAuth, true},
		{"server by address", server, "10.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{"another name", server, "other", x509.ExtKeyUsageServerAuth, false},
		{"server as client", server, "", x509.ExtKeyUsageClientAuth, false},
		{"client", client, "", x509.ExtKeyUsageClientAuth, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := tls.X509KeyPair(test.pair.Cert, test.pair.Key); err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(test.pair.Cert)
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.use}})
			if (err == nil) != test.good {
				t.Errorf("verify: %v", err)
			}
		})
	}
	block, _ := pem.Decode(client.Cert)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := certificate.Subject.CommonName + strings.Join(certificate.Subject.Organization, ","); got != "mesystem:masters" {
		t.Errorf("subject %s", got)
	}
}
