package workload

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// ScpCopy moves a file over SSH, as the 2019 study did: OpenSSH's sshd and scp.
func ScpCopy() Transfer {
	return Transfer{
		name:    "scp_copy",
		summary: "one large file over SSH, sshd and scp in SFTP mode, from memory to nowhere, a login for each transfer",
		size:    "256MiB",
		params:  []Param{{"cipher", "", "OpenSSH's name of the cipher, such as aes128-gcm@openssh.com; empty is what both sides prefer"}},
		port:    2222,
		prepare: func(m *transferDrive) (server, client []string, err error) {
			sshd, err := m.sshServer()
			if err != nil {
				return nil, nil, err
			}
			if err := m.sshKeys(); err != nil {
				return nil, nil, err
			}
			if err := m.write("sshd_config", sshdConfig(m)); err != nil {
				return nil, nil, err
			}
			oneByte := path.Join(m.server, "one-byte")
			if err := m.ask(m.s.Server, m.self, "transfer", "file", "--bytes", "1", oneByte); err != nil {
				return nil, nil, err
			}
			from := sshd.user + "@" + hostText(m) + ":"
			m.oneByte = from + oneByte
			client = append([]string{"scp", "--"}, scpOptions(m, m.s.Params.String("cipher"))...)
			return sshd.argv(m), append(client, from+path.Join(m.server, dataFile)), nil
		},
	}
}

// scpOptions override every setting that the configuration of the machine or its user could change.
func scpOptions(m *transferDrive, cipher string) []string {
	options := []string{"-F", "none", "-P", portText(m.target), "-i", path.Join(m.client, "id")}
	for _, o := range []string{
		"BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none",
		"StrictHostKeyChecking=yes", "UserKnownHostsFile=" + path.Join(m.client, "known_hosts"), "GlobalKnownHostsFile=none",
		"Compression=no", "ConnectTimeout=5", "ServerAliveInterval=5",
	} {
		options = append(options, "-o", o)
	}
	if cipher != "" {
		options = append(options, "-c", cipher)
	}
	return options
}

func hostText(m *transferDrive) string {
	if a := m.target.Addr(); a.Is6() {
		return "[" + a.String() + "]"
	}
	return m.target.Addr().String()
}

// sshKeys makes a host key at the server and a user's key at the client, and gives each
// side the public key of the other. Private keys stay where they were made.
func (m *transferDrive) sshKeys() error {
	hostKey, userKey := path.Join(m.server, "host_key"), path.Join(m.client, "id")
	var public [2]string
	for i, at := range []struct {
		place
		file string
	}{{m.places()[0], hostKey}, {m.places()[1], userKey}} {
		err := m.ask(at.e, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", at.file)
		if err == nil {
			public[i], err = m.answer(at.e, "cat", at.file+".pub")
		}
		if err != nil {
			return fmt.Errorf("make an SSH key at %s: %w", at.e.Name(), err)
		}
	}
	name := "[" + m.target.Addr().String() + "]:" + portText(m.target)
	return errors.Join(
		m.secret(m.s.Client, path.Join(m.client, "known_hosts"), name+" "+public[0]+"\n"),
		m.secret(m.s.Server, path.Join(m.server, "authorized_keys"), public[1]+"\n"))
}

// sshdConf is the configuration with words in capitals where sshdConfig puts values.
//
//go:embed sshd.conf
var sshdConf string

// sshdConfig returns the whole configuration. It allows no passwords: they would be those of the machine's accounts.
func sshdConfig(m *transferDrive) string {
	return strings.NewReplacer("LISTEN", m.listen.String(), "DIR", m.server).Replace(sshdConf)
}

// sshServer is how sshd can run at the endpoint.
type sshServer struct {
	user   string   // the user who logs in
	prefix []string // the command that starts sshd
}

// sshRunDir is where Debian's sshd, run by root, wants an empty folder.
const sshRunDir = "/run/sshd"

// sshStandIn is an account that every system has and that sshd does not consider locked,
// as it does the account nobody on systems with systemd.
const sshStandIn = "daemon"

// sshServer finds out how sshd can run. With all users mapped, root's sshd separates its
// privileges: it becomes the user sshd and enters an empty folder. Without other users,
// sshd runs as an ordinary user, who alone can log in: as sshStandIn in a user namespace,
// or without one as the user itself.
func (m *transferDrive) sshServer() (*sshServer, error) {
	e := m.s.Server
	output, err := m.answer(e, "sh", "-c", `id -u; id -un; id -u `+sshStandIn+`; awk 'END { print $3 }' /proc/self/uid_map`)
	f := strings.Fields(output)
	if err == nil && len(f) != 4 {
		err = errors.New("want four words")
	}
	if err != nil {
		return nil, fmt.Errorf("find the user at %s: the answer %q: %w", e.Name(), output, err)
	}
	if mapped, _ := strconv.ParseUint(f[3], 10, 64); f[0] == "0" && mapped > 1 {
		made, err := m.answer(e, "sh", "-c", `[ -d `+sshRunDir+` ] || { mkdir -m 755 `+sshRunDir+` && echo made; }`)
		if err != nil {
			return nil, fmt.Errorf("make sshd's folder at %s: %w", e.Name(), err)
		}
		if made == "made" {
			m.madeDirs = append(m.madeDirs, sshRunDir)
		}
		return &sshServer{user: f[1]}, nil
	}
	become := []string{"unshare", "--user", "--map-user=" + f[2], "--map-group=" + f[2], "--"}
	err = m.ask(e, append(become, "true")...)
	if err == nil {
		return &sshServer{user: sshStandIn, prefix: become}, nil
	}
	if f[0] == "0" {
		return nil, fmt.Errorf("at %s: sshd can't run as a root that can't become another user, nor in a user namespace of its own; run it as root, or allow user namespaces: %w", e.Name(), err)
	}
	return &sshServer{user: f[1]}, nil
}

// sshdScript starts sshd by its absolute path, which sshd requires.
const sshdScript = `PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
sshd=$(command -v sshd) || { echo "sshd: program not found" >&2; exit 127; }
exec "$sshd" "$@"`

// argv returns sshd's command line.
func (o *sshServer) argv(m *transferDrive) []string {
	return append(o.prefix, "sh", "-c", sshdScript, "sh", "-D", "-e", "-f", path.Join(m.server, "sshd_config"))
}
