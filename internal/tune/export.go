package tune

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/text"
)

// ExportFormats lists the kinds of files that Export writes.
var ExportFormats = []string{"sysctl", "udev", "tuned"}

// Export writes the plan as a file that sets the same values at every start of the machine:
// for /etc/sysctl.d, /etc/udev/rules.d, or a profile of tuned. The file includes values that
// the machine has already. Comments name the changes that a file of this kind cannot hold.
// Export returns a *text.UnknownError for an unknown format.
func Export(w io.Writer, format string, items []Item) error {
	e := exporter{}
	switch format {
	case "sysctl":
		e.line, e.where = sysctlLine, "put this into /etc/sysctl.d/90-cnibench.conf"
	case "udev":
		e.line, e.where = udevLine, "put this into /etc/udev/rules.d/90-cnibench.rules"
	case "tuned":
		return exportTuned(w, items)
	default:
		return text.Unknown("export format", format, ExportFormats)
	}
	return e.write(w, items)
}

// exporter writes one line for each change that its kind of file can hold.
type exporter struct {
	line  func(c Change) string // "" if the file cannot hold it
	where string
}

func (e exporter) write(w io.Writer, items []Item) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by cnibench tune plan: %s\n", e.where)
	var left []string
	for _, item := range items {
		var lines []string
		for _, c := range item.Changes {
			line := e.line(c)
			if line == "" {
				left = append(left, describeOmitted(item, c))
			} else if !slices.Contains(lines, line) { // one rule serves all CPUs
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n# %s: %s (%s)\n%s\n", item.Setting.Name, item.Setting.Summary, strings.Join(item.Setting.Studies, ", "), strings.Join(lines, "\n"))
		}
	}
	writeLeft(&b, left)
	_, err := io.WriteString(w, b.String())
	return err
}

// describeOmitted describes a change that the file cannot hold.
func describeOmitted(item Item, c Change) string {
	return fmt.Sprintf("%s: %s = %s", item.Setting.Name, c.Place, c.To)
}

func writeLeft(b *strings.Builder, left []string) {
	if len(left) == 0 {
		return
	}
	b.WriteString("\n# A file of this kind cannot hold:\n")
	for _, l := range left {
		fmt.Fprintf(b, "#   %s\n", l)
	}
}

func sysctlLine(c Change) string {
	key := c.sysctlKey()
	if key == "" {
		return ""
	}
	return key + " = " + c.To
}

func udevLine(c Change) string {
	if strings.HasSuffix(c.Name, "/cpufreq/scaling_governor") {
		return fmt.Sprintf(`SUBSYSTEM=="cpu", ACTION=="add", TEST=="cpufreq/scaling_governor", ATTR{cpufreq/scaling_governor}="%s"`, c.To)
	}
	nic, what, ok := ofNIC(c.Place)
	if !ok {
		return ""
	}
	// udev adds an interface as eth0, then moves it to its name.
	rule := fmt.Sprintf(`SUBSYSTEM=="net", ACTION=="add|move", KERNEL=="%s", `, nic)
	if option := accessors[c.Kind].ethtool; option != "" {
		return rule + fmt.Sprintf(`RUN+="/usr/sbin/ethtool %s %s %s %s"`, option, nic, what, c.To)
	}
	return rule + fmt.Sprintf(`ATTR{%s}="%s"`, what, c.To)
}

// ofNIC splits a place of an interface into the interface's name and the rest.
func ofNIC(p Place) (nic, what string, ok bool) {
	if accessors[p.Kind].ethtool != "" {
		return strings.Cut(p.Name, " ")
	}
	rest, ok := strings.CutPrefix(p.Name, netClass)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// exportTuned writes a profile. A profile has sections, so it does not follow the order of
// the settings.
func exportTuned(w io.Writer, items []Item) error {
	sections := map[string][]string{}
	add := func(section, line string) {
		if !slices.Contains(sections[section], line) {
			sections[section] = append(sections[section], line)
		}
	}
	nics := map[string]map[string]string{"ring": {}, "features": {}} // values of interfaces by key
	var left []string
	add("main", "summary=written by cnibench tune plan")
	for _, item := range items {
		for _, c := range item.Changes {
			nic, what, _ := ofNIC(c.Place)
			switch {
			case c.Kind == Tuned && c.To != "off":
				add("main", "include="+c.To)
			case c.Kind == Service && c.To == "inactive":
				add("service", "service."+c.Name+"=stop")
			case accessors[c.Kind].profile != "":
				of := nics[accessors[c.Kind].profile]
				of[nic] = strings.TrimSpace(of[nic] + " " + what + " " + c.To)
			case c.sysctlKey() != "":
				add("sysctl", c.sysctlKey()+"="+c.To)
			case strings.HasSuffix(c.Name, "/cpufreq/scaling_governor"):
				add("cpu", "governor="+c.To)
			case strings.HasPrefix(c.Name, "/sys/"):
				add("sysfs", c.Name+"="+c.To)
			default:
				left = append(left, describeOmitted(item, c))
			}
		}
	}
	for _, key := range []string{"ring", "features"} {
		for nic, value := range nics[key] {
			section := "net_" + nic
			add(section, "type=net")
			add(section, "devices="+nic)
			add(section, key+"="+value)
		}
	}
	var b strings.Builder
	b.WriteString("# Written by cnibench tune plan: put this into /etc/tuned/cnibench/tuned.conf, then tuned-adm profile cnibench\n")
	for _, name := range sectionOrder(sections) {
		fmt.Fprintf(&b, "\n[%s]\n%s\n", name, strings.Join(sections[name], "\n"))
	}
	writeLeft(&b, left)
	_, err := io.WriteString(w, b.String())
	return err
}

// sectionOrder returns the names of the sections: main first, the others sorted.
func sectionOrder(sections map[string][]string) []string {
	names := []string{"main"}
	var rest []string
	for name := range sections {
		if name != "main" {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}
