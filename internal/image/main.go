// Command image writes the image that cnibench runs in pods of a cluster as one
// file, without a container engine: the files of Debian packages that are
// installed here, the shared libraries that their programs want, and what is
// staged beside them, such as cnibench itself. It runs no program and fetches
// nothing. Next: files.go for what goes in, archive.go for the file's format.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// packages hold what steps and checks run in a pod, by the names of Debian.
const packages = "coreutils,dash,mawk,util-linux,iproute2,ethtool,iperf3,qperf,nginx,nginx-light,vsftpd,openssh-server,openssh-sftp-server,openssh-client,curl"

func main() {
	name := flag.String("name", "cnibench:dev", "the image's name and tag")
	from := flag.String("packages", packages, "Debian packages whose files go in; one that is not installed is left out and named")
	staged := flag.String("add", "", "folder whose files go in as they are, over all others")
	out := flag.String("o", "cnibench-image.tar", "file to write")
	flag.Parse()
	if err := run(*name, strings.Split(*from, ","), *staged, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(name string, packages []string, staged, out string) error {
	system := newTree()
	missing, err := system.addPackages("/", packages)
	if err != nil {
		return err
	}
	for _, p := range missing {
		fmt.Fprintf(os.Stderr, "image: package %s is not installed: its programs are not in the image\n", p)
	}
	system.addSystem()
	own := newTree()
	if staged != "" {
		if err := own.addFolder(staged); err != nil {
			return err
		}
		// What was staged may want libraries of this machine, too.
		if err := system.addLibraries("/", own.programs()); err != nil {
			return err
		}
	}
	if err := system.addLibraries("/", system.programs()); err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	// The programs change less often than cnibench: a layer each.
	if err := writeImage(f, name, runtime.GOARCH, system, own); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
