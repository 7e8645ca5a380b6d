package host

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed packages.txt
var packageTable string

// packages has a row of packageTable for each program, a column for each distribution;
// "" where the distribution has no package.
var packages = sync.OnceValue(func() map[string][4]string {
	rows := map[string][4]string{}
	for line := range strings.Lines(packageTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		var row [4]string
		for i, name := range fields[1:] {
			if name != "-" {
				row[i] = name
			}
		}
		rows[fields[0]] = row
	}
	return rows
})

// builds are the commands that build, in a checkout, programs that no package has.
var builds = map[string]string{"flanneld": "make flanneld"}

// Known says whether the table of packages, or that of builds, has the program.
func Known(program string) bool {
	return packages()[program][0] != "" || builds[program] != ""
}

// Distribution is a family of Linux distributions that share names of packages.
type Distribution struct {
	Name    string
	install string // the command line before the packages
	lean    string // its flag for nothing beside what is needed
	ids     []string
	column  int // of packages
}

var distributions = []Distribution{
	{"Debian", "apt-get install", " --no-install-recommends", []string{"debian", "ubuntu"}, 0},
	{"Fedora", "dnf install", " --setopt=install_weak_deps=False", []string{"fedora", "rhel", "centos"}, 1},
	{"Arch", "pacman -S", " --needed", []string{"arch"}, 2},
	{"Alpine", "apk add", "", []string{"alpine"}, 3},
}

// Distributions are the families that the table of packages has.
func Distributions() []Distribution { return slices.Clone(distributions) }

// ThisDistribution returns this machine's distribution by /etc/os-release. It is Debian if the file
// names no distribution of the table.
func ThisDistribution() Distribution {
	raw, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return distributions[0]
	}
	return distributionOf(string(raw))
}

// distributionOf reads os-release(5): ID, else the words of ID_LIKE.
func distributionOf(release string) Distribution {
	field := map[string]string{}
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		field[key] = strings.Trim(value, `"'`)
	}
	for _, id := range append([]string{field["ID"]}, strings.Fields(field["ID_LIKE"])...) {
		for _, d := range distributions {
			if slices.Contains(d.ids, id) {
				return d
			}
		}
	}
	return distributions[0]
}

// Package is the distribution's package that has the program, "" where none is known.
func (d Distribution) Package(program string) string { return packages()[program][d.column] }

// Install is the command line that installs the packages.
func (d Distribution) Install(packages ...string) string {
	return d.install + d.lean + " " + strings.Join(packages, " ")
}

// Remedy says how to install or build the program; "" if neither package nor build is
// known.
func (d Distribution) Remedy(program string) string {
	switch pkg := d.Package(program); {
	case builds[program] != "":
		return "build it with: " + builds[program]
	case pkg != "":
		return "install it with: " + d.install + " " + pkg
	}
	return ""
}

// DefaultCNIPath is where CNI plugins are looked for: the specification's
// folder, then those of the distributions' packages.
var DefaultCNIPath = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}

// CNIPath is CNI_PATH, as for other runtimes, or the usual folders.
func CNIPath() []string {
	if p := os.Getenv("CNI_PATH"); p != "" {
		return filepath.SplitList(p)
	}
	return DefaultCNIPath
}

const cniPrefix = "cni/"

// CNI is the CNI plugin's name as a program.
func CNI(plugin string) string { return cniPrefix + plugin }

// Plugin returns the name of the CNI plugin if CNI made the program's name.
func Plugin(program string) (name string, isPlugin bool) {
	return strings.CutPrefix(program, cniPrefix)
}

// CheckProgram returns nil if the program, CNI plugin or file is on this machine.
func CheckProgram(program string) *ProgramError {
	plugin, isPlugin := strings.CutPrefix(program, cniPrefix)
	var err error
	switch {
	case isPlugin:
		err = fs.ErrNotExist
		for _, dir := range CNIPath() {
			if _, err = exec.LookPath(filepath.Join(dir, plugin)); err == nil {
				break
			}
		}
	case filepath.IsAbs(program):
		_, err = os.Stat(program)
	default:
		_, err = find(program)
	}
	if err == nil {
		return nil
	}
	return checkProgram(program)
}

// Have returns nil if all those programs, CNI plugins and files are on this
// machine, else an error that joins a *ProgramError for each missing one.
func Have(programs ...string) error {
	var errs []error
	for _, p := range programs {
		if err := CheckProgram(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkProgram(program string) *ProgramError {
	return &ProgramError{Program: program, Remedy: ThisDistribution().Remedy(program)}
}
