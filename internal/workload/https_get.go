package workload

import (
	"errors"
	"fmt"
	"path"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/load/transfer"
)

// HTTPSGet moves a file over HTTP/1.1 and TLS 1.3: nginx and curl, both with
// OpenSSL in user space.
func HTTPSGet() Transfer {
	return Transfer{
		name:    "https_get",
		summary: "one large file over HTTPS (TLS 1.3, ECDSA P-256), nginx and curl, from memory to nowhere, a connection for each transfer",
		size:    "256MiB",
		params:  []Param{{"cipher", "TLS_AES_128_GCM_SHA256", "the one TLS 1.3 cipher suite that curl offers; the default is what http3_get uses too, on CPUs with AES"}},
		port:    8443,
		prepare: func(m *transferDrive) (server, client []string, err error) {
			if err = m.certificate(); err != nil {
				return nil, nil, err
			}
			// Data that is encrypted in user space can't be sent with sendfile.
			server, err = m.nginx(fileServer{listen: m.listen, dir: m.server, tls: true})
			return server, []string{"curl", "--", "--http1.1", "--tlsv1.3", "--tls13-ciphers", m.s.Params.String("cipher"),
				"--cacert", m.trustFile(), "https://" + m.target.String() + "/" + dataFile}, err
		},
	}
}

// certificate makes a key and a certificate. It writes both to the server, and the
// certificate to the client.
func (m *transferDrive) certificate() error {
	cert, key, err := transfer.Certificate(m.listen.Addr(), m.target.Addr())
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	return errors.Join(
		m.secret(m.s.Server, path.Join(m.server, "cert.pem"), string(cert)),
		m.secret(m.s.Server, path.Join(m.server, "key.pem"), string(key)),
		m.secret(m.s.Client, m.trustFile(), string(cert)))
}

// trustFile returns the path of the certificates that the client trusts.
func (m *transferDrive) trustFile() string { return path.Join(m.client, "ca.pem") }

func (m *transferDrive) secret(e arena.Endpoint, name, text string) error {
	return runWriter(m.ctx, e, `umask 077 && cat >"$1"`, name, text) // only the owner can read it
}
