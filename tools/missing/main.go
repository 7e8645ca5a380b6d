// Program missing prints the command line that installs the packages which
// this machine lacks, and nothing where it lacks none; with --packages, the
// packages of another distribution, here or not, one a line. It is what
// scripts/setup asks before anything is built, so its imports stay few. Next:
// package programs.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
)

func main() {
	suite := flag.String("suite", "", "only what this suite runs")
	contenders := flag.String("contenders", "", "only what these contenders run, with commas between")
	profiles := flag.Bool("profiles", false, "print the names of the profiles")
	of := flag.String("packages", "", "print the packages of this distribution: Debian, Fedora, Arch or Alpine")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: missing %s | missing [--suite NAME] [--contenders A,B] [--packages DISTRIBUTION]\n", strings.Join(programs.Profiles(), "|"))
	}
	flag.Parse()
	if *profiles {
		fmt.Println(strings.Join(programs.Profiles(), " "))
		return
	}
	list, err := wanted(flag.Arg(0), *suite, *contenders)
	if err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(2)
	}
	if *of != "" {
		i := slices.IndexFunc(host.Distributions(), func(d host.Distribution) bool { return d.Name == *of })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "setup: no packages of %q are known\n", *of)
			os.Exit(2)
		}
		fmt.Println(strings.Join(list.Packages(host.Distributions()[i]), "\n"))
		return
	}
	for _, w := range list.FindMissing() {
		if w.Package == "" && w.Remedy == "" {
			fmt.Fprintf(os.Stderr, "setup: no package of this distribution is known to have %s, for %s\n", w.Program, strings.Join(w.For, ", "))
		}
	}
	if install := list.Install(); install != "" {
		fmt.Println(install)
	}
}

func wanted(profile, suite, contenders string) (programs.List, error) {
	if profile != "" {
		return programs.Profile(profile)
	}
	return programs.Run(suite, strings.FieldsFunc(contenders, func(r rune) bool { return r == ',' }))
}
