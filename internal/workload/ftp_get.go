package workload

import (
	"crypto/rand"
	"errors"
	"path"
	"strconv"

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

// vsftpdConfig returns the whole configuration. A login of an account would need the
// machine's accounts and PAM files. The only login that vsftpd checks by itself is the
// anonymous one with a list of passwords.
func vsftpdConfig(m *transferDrive) string {
	return `listen=YES
background=NO
listen_address=` + m.listen.Addr().String() + `
listen_port=` + portText(m.listen) + `
pasv_min_port=` + strconv.Itoa(ftpDataPort) + `
pasv_max_port=` + strconv.Itoa(ftpDataPort+ftpDataPorts-1) + `
local_enable=NO
anonymous_enable=YES
secure_email_list_enable=YES
email_password_file=` + path.Join(m.server, ftpPasswords) + `
anon_root=` + m.server + `
anon_world_readable_only=NO
# It changes to this account's home before it changes to anon_root; every
# distribution has the account and the folder.
ftp_username=daemon
# A user namespace may map one user only, so that it cannot become another.
run_as_launching_user=YES
# Namespaces of its own and a list of system calls are not everywhere allowed.
isolate=NO
isolate_network=NO
seccomp_sandbox=NO
xferlog_enable=NO
use_sendfile=YES
`
}
