//go:build linux

package products

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/tools/image"
)

// protocols is /etc/protocols of the images, as far as agents name protocols: without it ipset
// knows no "tcp:80", and products leave policies for named ports and their Services undone.
const protocols = "icmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\nsctp 132 SCTP\n"

// addPrograms adds programs of this machine, by their names or paths, with the
// shared libraries and the file that they want. Each has the path that it has on this machine.
func addPrograms(tree *image.Tree, names ...string) error {
	tree.AddRootLinks("/")
	tree.AddText("/etc/protocols", protocols)
	for _, name := range names {
		path, err := findProgram(name)
		if err != nil {
			return err
		}
		if err := tree.AddFile("/", path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return tree.AddLibraries("/", tree.Sources()...)
}

func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/bin", "/sbin", "/bin") {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %s on this machine for the image: scripts/setup test-kube installs what is needed", name)
}

// iptablesExtensions returns the matches and targets that iptables loads by
// their names.
func iptablesExtensions() ([]string, error) {
	found, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no extensions of iptables in /usr/lib/*/xtables: scripts/setup test installs what is needed")
	}
	return found, err
}
