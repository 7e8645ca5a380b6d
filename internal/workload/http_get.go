package workload

import (
	_ "embed"
	"net/netip"
	"path"
	"strings"
)

// HTTPGet moves a file over HTTP/1.1, as the 2019 study did: nginx and curl.
func HTTPGet() Transfer {
	return Transfer{
		name:    "http_get",
		summary: "one large file over HTTP/1.1, nginx and curl, from memory to nowhere, a connection for each transfer",
		size:    "256MiB",
		params:  []Param{{"sendfile", true, "nginx hands the file to the kernel with sendfile(2), as packaged configurations do, instead of reading it"}},
		port:    8080,
		prepare: func(m *transferDrive) (server, client []string, err error) {
			server, err = m.nginx(fileServer{listen: m.listen, dir: m.server, sendfile: m.s.Params.Bool("sendfile")})
			return server, []string{"curl", "--", "--http1.1", "http://" + m.target.String() + "/" + dataFile}, err
		},
	}
}

// fileServer is an nginx that serves the files of a folder.
type fileServer struct {
	listen   netip.AddrPort
	dir      string
	sendfile bool
	tls      bool // with cert.pem and key.pem of the folder, TLS 1.3 only
}

// fileServerConf is the configuration with words in capitals where config puts values.
//
//go:embed nginx_file.conf
var fileServerConf string

// config returns the whole configuration. nginx writes only into the folder, so that it
// needs no rights elsewhere.
func (f fileServer) config() string {
	sendfile, ssl, tls := "off", "", ""
	if f.sendfile {
		sendfile = "on"
	}
	if f.tls {
		ssl = " ssl"
		tls = `
        ssl_certificate "DIR/cert.pem";
        ssl_certificate_key "DIR/key.pem";
        ssl_protocols TLSv1.3;
        ssl_session_cache off;
        ssl_session_tickets off;`
	}
	text := strings.NewReplacer("SENDFILE", sendfile, "LISTEN", f.listen.String()+ssl, "TLS", tls, "FILE", dataFile).Replace(fileServerConf)
	return strings.ReplaceAll(text, "DIR", f.dir)
}

// nginx writes the configuration and returns the command line of nginx.
func (m *transferDrive) nginx(f fileServer) ([]string, error) {
	if err := m.write("nginx.conf", f.config()); err != nil {
		return nil, err
	}
	return []string{"nginx", "-e", "stderr", "-p", m.server, "-c", path.Join(m.server, "nginx.conf")}, nil
}

// write writes a configuration file at the server and a copy to the raw files, so it must
// not contain a secret.
func (m *transferDrive) write(name, text string) error {
	if err := writeRaw(m.s.Raw, name, text); err != nil {
		return err
	}
	return writeAt(m.ctx, m.s.Server, path.Join(m.server, name), text)
}
