// Command man writes the manual page of every command of cnibench.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/cnibench/cnibench/internal/cli"
)

func main() {
	version := flag.String("version", "dev", "the version that the pages name")
	out := flag.String("o", ".", "folder to write")
	flag.Parse()
	if err := write(*out, *version); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes man/*.1; SOURCE_DATE_EPOCH is the date of the pages.
func write(dir, version string) error {
	man := filepath.Join(dir, "man")
	if err := errors.Join(os.RemoveAll(man), os.MkdirAll(man, 0o755)); err != nil {
		return err
	}
	root := cli.Root()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Source: "cnibench " + version, Manual: "cnibench"}, man)
}
