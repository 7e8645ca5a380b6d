package main

import (
	"io/fs"
	"slices"

	"github.com/cnibench/cnibench/tools/image"
)

// addSystem adds the accounts and folders that the programs of the image open.
func addSystem(t *image.Tree) {
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
			"sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
		"etc/shells":        "/bin/sh\n",
	} {
		t.AddText(name, text)
	}
	for name, mode := range map[string]fs.FileMode{
		"tmp": fs.ModeSticky | 0o777, "var/tmp": fs.ModeSticky | 0o777, "root": 0o700,
		"run/sshd": 0o755, "var/log/nginx": 0o755, "var/lib/nginx": 0o755, "var/run/vsftpd/empty": 0o755, "usr/share/empty": 0o755,
		"proc": 0o555, "sys": 0o555, "dev": 0o755,
	} {
		t.AddDir(name, mode)
	}
	// Debian chooses among several awks by a link that belongs to no package.
	if slices.Contains(t.Paths(), "usr/bin/mawk") {
		t.AddLink("usr/bin/awk", "mawk")
	}
}
