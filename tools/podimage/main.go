// Command podimage writes the image that cnibench runs in pods of a cluster as
// one file, without a container engine: the files of Debian packages that are
// installed on this machine or below other roots, the shared libraries that
// their programs want, and over them a folder with cnibench itself. Next: system.go, ../image/image.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/tools/image"
)

// packages hold what steps and checks run in a pod, by the names of Debian.
const packages = "coreutils,dash,mawk,util-linux,iproute2,ethtool,iperf3,qperf,nginx,nginx-light,vsftpd,openssh-server,openssh-sftp-server,openssh-client,curl"

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "podimage [flags] ARCHITECTURE=FOLDER…: the files below FOLDER go over all others")
		flag.PrintDefaults()
	}
	name := flag.String("name", "cnibench:dev", "the image's name and tag")
	from := flag.String("packages", packages, "Debian packages whose files go in; a package that is not installed is named and left out")
	roots := flag.String("roots", "", "folder with a root for each architecture, ROOTS/ARCHITECTURE, where the packages are installed (default: this machine's root, for its architecture alone)")
	list := flag.Bool("list", false, "list the packages and end")
	out := flag.String("o", "cnibench-image.tar", "file to write")
	flag.Parse()
	wanted := strings.FieldsFunc(*from, func(r rune) bool { return r == ',' })
	if *list {
		fmt.Println(strings.Join(wanted, "\n"))
		return
	}
	if err := run(*name, wanted, *roots, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "podimage:", err)
		os.Exit(1)
	}
}

func run(name string, packages []string, roots, out string, staged []string) error {
	if len(staged) == 0 {
		return errors.New("no ARCHITECTURE=FOLDER is given")
	}
	var images []image.Image
	for _, arg := range staged {
		architecture, dir, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%s: want ARCHITECTURE=FOLDER, such as %s=bin/image/%s", arg, runtime.GOARCH, runtime.GOARCH)
		}
		root := "/"
		if roots != "" {
			root = filepath.Join(roots, architecture)
		} else if architecture != runtime.GOARCH && len(packages) > 0 {
			return fmt.Errorf("the installed packages are for %s, not for %s; give a root with those in -roots, or -packages '' for an image without", runtime.GOARCH, architecture)
		}
		i, missing, err := build(architecture, dir, root, packages)
		if err != nil {
			return err
		}
		for _, p := range missing {
			fmt.Fprintf(os.Stderr, "podimage: package %s is not installed: its programs are not in the image\n", p)
		}
		images = append(images, i)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(image.Write(f, name, images...), f.Close())
}

// build returns the image, and the names of packages that are not installed.
func build(architecture, staged, root string, packages []string) (i image.Image, missing []string, err error) {
	system, own := image.NewTree(), image.NewTree()
	if err := own.AddFolder("/", staged); err != nil {
		return i, nil, err
	}
	if len(packages) > 0 {
		if missing, err = system.AddPackages(root, packages); err != nil {
			return i, nil, err
		}
		if err := system.AddLibraries(root, append(system.Sources(), own.Sources()...)...); err != nil {
			return i, nil, err
		}
	}
	addSystem(system)
	return image.Image{
		Architecture: architecture,
		Config: v1.Config{
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint: []string{"/usr/local/bin/cnibench"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title": "cnibench", "org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.description": "cnibench and the programs that its steps run, for pods",
			},
		},
		// The programs change less often than cnibench, so each has a layer.
		Layers: []*image.Tree{system, own},
	}, missing, nil
}
