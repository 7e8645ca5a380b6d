package workload

import "path"

// HTTP3Get moves a file over HTTP/3: quic-go on both sides, in this program.
func HTTP3Get() Transfer {
	return Transfer{
		name:    "http3_get",
		summary: "one large file over HTTP/3 (QUIC on UDP, TLS 1.3, ECDSA P-256), quic-go on both sides, from memory to nowhere, a connection for each transfer",
		size:    "64MiB",
		params:  []Param{{"gso", true, "the server hands the kernel many packets at once where it can (UDP_SEGMENT); false sends one by one"}},
		port:    8443,
		http3:   true,
		prepare: func(m *transferDrive) (server, client []string, err error) {
			if err = m.certificate(); err != nil {
				return nil, nil, err
			}
			server = []string{m.self, "transfer", "serve-http3", "--listen", m.listen.String(),
				"--cert", path.Join(m.server, "cert.pem"), "--key", path.Join(m.server, "key.pem"), path.Join(m.server, dataFile)}
			if !m.s.Params.Bool("gso") {
				server = append([]string{"env", "QUIC_GO_DISABLE_GSO=true"}, server...)
			}
			return server, []string{"http3", "--cacert", m.trustFile(), "https://" + m.target.String() + "/" + dataFile}, nil
		},
	}
}
