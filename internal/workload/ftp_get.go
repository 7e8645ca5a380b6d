package workload

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
)

// FTPGet moves a file over FTP, as the 2019 study did: vsftpd and curl.
func FTPGet() Transfer {
	return Transfer{
		name:      "ftp_get",
		summary:   "one large file over FTP, vsftpd and curl, from memory to nowhere, a login for each transfer",
		size:      "256MiB",
		port:      2121,
		filePorts: ports(arena.TCP, ftpDataPort, ftpDataPorts),
		prepare: func(m *transferDrive) (server, client []string, err error) {
			password := rand.Text()
			netrc := path.Join(m.client, "netrc")
			err = errors.Join(
				m.write("vsftpd.conf", vsftpdConfig(m)),
				m.secret(m.s.Server, path.Join(m.server, ftpPasswords), password+"\n"),
				m.secret(m.s.Client, netrc, "machine "+m.target.Addr().String()+" login anonymous password "+password+"\n"))
			return []string{"vsftpd", path.Join(m.server, "vsftpd.conf")},
				[]string{"curl", "--", "--netrc-file", netrc, "ftp://" + m.target.String() + "/" + dataFile}, err
		},
	}
}

// vsftpd listens for each file on one of ftpDataPorts ports, the first of which is
// ftpDataPort: few enough for a Service, and enough for one client to always
// find a free port.
const (
	ftpDataPort  = 21200
	ftpDataPorts = 8
)

// ftpPasswords is the name of the file with the passwords that vsftpd accepts.
const ftpPasswords = "ftp-passwords"

// vsftpdConf is the configuration with words in capitals where vsftpdConfig puts values.
//
//go:embed vsftpd.conf
var vsftpdConf string

// vsftpdConfig returns the whole configuration. A login of an account would need the
// machine's accounts and PAM files. The only login that vsftpd checks by itself is the
// anonymous one with a list of passwords.
func vsftpdConfig(m *transferDrive) string {
	return strings.NewReplacer(
		"ADDRESS", m.listen.Addr().String(), "PORT", portText(m.listen), "DIR", m.server, "PASSWORDS", ftpPasswords,
		"FIRST", strconv.Itoa(ftpDataPort), "LAST", strconv.Itoa(ftpDataPort+ftpDataPorts-1),
	).Replace(vsftpdConf)
}
