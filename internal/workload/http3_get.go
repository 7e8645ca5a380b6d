package workload

import (
	"context"
	"path"
)

// HTTP3Get moves a file over HTTP/3: quic-go on both sides, in this program.
type HTTP3Get struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string
}

// Info implements Workload.
func (HTTP3Get) Info() Info {
	return Info{
		Name:    "http3_get",
		Summary: "one large file over HTTP/3 (QUIC on UDP, TLS 1.3, ECDSA P-256), quic-go on both sides, from memory to nowhere, a connection for each transfer",
		Params: append(transferParams("64MiB"),
			Param{"gso", true, "the server hands the kernel many packets at once where it can (UDP_SEGMENT); false sends one by one"}),
		Metrics: transferMetrics(),
	}
}

// http3GetPort is where the server listens.
const http3GetPort = 8443

// Drive implements Workload.
func (h HTTP3Get) Drive(ctx context.Context, s *Session) (Outcome, error) {
	d := mover{workload: "http3_get", program: h.Program, port: http3GetPort, http3: true, prepare: func(m *move) (server, client []string, err error) {
		if err = m.certificate(); err != nil {
			return nil, nil, err
		}
		server = []string{m.self, "transfer", "serve-http3", "--listen", m.listen.String(),
			"--cert", path.Join(m.server, "cert.pem"), "--key", path.Join(m.server, "key.pem"), path.Join(m.server, dataFile)}
		if !s.Params.Bool("gso") {
			server = append([]string{"env", "QUIC_GO_DISABLE_GSO=true"}, server...)
		}
		return server, []string{"http3", "--cacert", m.trusted(), "https://" + m.target.String() + "/" + dataFile}, nil
	}}
	return d.drive(ctx, s)
}
