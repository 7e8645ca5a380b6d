package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of the image: a folder, a symbolic link, a file of this
// machine, or text.
type entry struct {
	mode   fs.FileMode // type and permissions; never setuid
	link   string      // of a symbolic link
	source string      // of a file: where it is here, unless it has text
	text   string
}

// tree is files of an image by their path in it, without the leading slash.
type tree struct{ entries map[string]entry }

func newTree() *tree { return &tree{map[string]entry{}} }

// paths are in an order in which a folder comes before what is in it.
func (t *tree) paths() []string { return slices.Sorted(maps.Keys(t.entries)) }

// put adds an entry and the folders above it.
func (t *tree) put(name string, e entry) {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return
	}
	t.entries[name] = e
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, there := t.entries[dir]; there {
			return
		}
		t.entries[dir] = entry{mode: fs.ModeDir | 0o755}
	}
}

// useless are folders of packages that no program reads here.
var useless = []string{
	"/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/", "/usr/share/bash-completion/",
	"/usr/share/bug/", "/usr/share/zsh/", "/usr/share/fish/", "/etc/init.d/", "/etc/default/", "/etc/cron", "/etc/logrotate.d/", "/lib/systemd/", "/usr/lib/systemd/",
}

// addPackages adds the files of installed packages, and returns the names of
// those that are not.
func (t *tree) addPackages(root string, packages []string) (missing []string, err error) {
	// Where /bin is a link to /usr/bin, so it is in the image.
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if target, err := os.Readlink(filepath.Join(root, dir)); err == nil {
			t.put(dir, entry{mode: fs.ModeSymlink | 0o777, link: target})
		}
	}
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
			if slices.ContainsFunc(useless, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
				continue
			}
			// Not every file of the list has to be there: an administrator
			// may have moved or removed some.
			if err := t.addFile(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return missing, nil
}

// parseList reads dpkg's list of a package's files: a path a line.
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

// mostLinks is how long a chain of links may be.
const mostLinks = 40

// addFile adds a file of this machine under its own path, and what it links to.
// Folders come by what is in them.
func (t *tree) addFile(root, name string) error {
	for range mostLinks {
		at, err := resolve(root, name)
		if err != nil {
			return err
		}
		source := filepath.Join(root, at)
		info, err := os.Lstat(source)
		switch {
		case err != nil:
			return err
		case info.Mode().IsRegular():
			t.put(at, entry{mode: info.Mode().Perm(), source: source})
			return nil
		case info.Mode()&fs.ModeSymlink == 0:
			return nil
		}
		target, err := os.Readlink(source)
		if err != nil {
			return err
		}
		t.put(at, entry{mode: fs.ModeSymlink | 0o777, link: target})
		if name = target; !path.IsAbs(target) {
			name = path.Join(path.Dir(at), target)
		}
	}
	return fmt.Errorf("%s: too many links", name)
}

// resolve is the path without links in its folder, as the image has them.
func resolve(root, name string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(root, path.Dir(name)))
	if err != nil {
		return "", err
	}
	real, err := filepath.Rel(root, dir)
	return path.Join("/", filepath.ToSlash(real), path.Base(name)), err
}

// addFolder adds what is below dir under its path from there.
func (t *tree) addFolder(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		info, err := os.Stat(name) // a link's file goes in
		if err != nil {
			return err
		}
		e := entry{mode: fs.ModeDir | 0o755}
		if info.Mode().IsRegular() {
			e = entry{mode: info.Mode().Perm() | 0o444, source: name}
		}
		t.put(filepath.ToSlash(rel), e)
		return nil
	})
}

// addSystem adds the accounts and folders that the programs want to find.
func (t *tree) addSystem() {
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
			"sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
		"etc/shells":        "/bin/sh\n",
	} {
		t.put(name, entry{mode: 0o644, text: text})
	}
	for name, mode := range map[string]fs.FileMode{
		"tmp": fs.ModeSticky | 0o777, "var/tmp": fs.ModeSticky | 0o777, "root": 0o700,
		"run/sshd": 0o755, "var/log/nginx": 0o755, "var/lib/nginx": 0o755, "var/run/vsftpd/empty": 0o755, "usr/share/empty": 0o755,
		"proc": 0o555, "sys": 0o555, "dev": 0o755,
	} {
		t.put(name, entry{mode: fs.ModeDir | mode})
	}
	// Debian chooses among several awks by a link that is no package's.
	if _, there := t.entries["usr/bin/mawk"]; there {
		t.put("usr/bin/awk", entry{mode: fs.ModeSymlink | 0o777, link: "mawk"})
	}
}

// programs are the tree's files that may be programs or libraries, where they
// are here.
func (t *tree) programs() []string {
	var list []string
	for _, name := range t.paths() {
		if e := t.entries[name]; e.mode.IsRegular() && e.source != "" {
			list = append(list, e.source)
		}
	}
	return list
}
