package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unread are folders of packages that no program of an image reads.
var unread = []string{
	"/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/", "/usr/share/bash-completion/",
	"/usr/share/bug/", "/usr/share/zsh/", "/usr/share/fish/", "/etc/init.d/", "/etc/default/", "/etc/cron", "/etc/logrotate.d/", "/lib/systemd/", "/usr/lib/systemd/",
}

// unreadPlugin is tc's plugin for ATM, whose library is only recommended to be installed.
const unreadPlugin = "/usr/lib/*/tc/q_atm.so"

// AddPackages adds the files of installed Debian packages, and returns the
// names of the packages that are not installed.
func (t *Tree) AddPackages(root string, packages []string) (missing []string, err error) {
	t.AddRootLinks(root)
	for _, p := range packages {
		list, err := os.Open(filepath.Join(root, "var/lib/dpkg/info", p+".list"))
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, p)
			continue
		}
		if err != nil {
			return nil, err
		}
		names, err := parseList(list)
		list.Close()
		if err != nil {
			return nil, fmt.Errorf("files of package %s: %w", p, err)
		}
		for _, name := range names {
			if slices.ContainsFunc(unread, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
				continue
			}
			if plugin, _ := path.Match(unreadPlugin, name); plugin { // the pattern is well formed
				continue
			}
			// An administrator may have moved or removed files of the list.
			if err := t.AddFile(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return missing, nil
}

// parseList reads dpkg's list of a package's files: one path on each line.
func parseList(r io.Reader) ([]string, error) {
	var names []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if name := lines.Text(); strings.HasPrefix(name, "/") && name != "/." {
			names = append(names, path.Clean(name))
		}
	}
	return names, lines.Err()
}
