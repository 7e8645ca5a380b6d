package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/text/console"
)

// flagGroup is a heading of the help of commands that have --arena. A flag
// whose usage begins with the prefix is in the group, and so are those named.
type flagGroup struct {
	title, prefix string
	flags         []string
}

func flagGroups() []flagGroup {
	return []flagGroup{
		{"What", "", []string{
			"study", "scale", "suite", "step", "steps", "set", "contenders", "contender", "baseline", "profile", "sysctl", "machine", "nic",
			"arena", "nodes", "mtu", "line-rate", "services", "rates", "rates-from", "max-rate", "check", "case", "hold", "packages", "cache", "force", "plan", "config",
		}},
		{"How long", "", []string{"rounds", "until", "max-time", "duration", "warmup", "slice", "seed"}},
		{"Lab (--arena auto, lab or microvm)", "lab: ", nil},
		{"microVM (for what runs in a guest)", "microvm: ", nil},
		{"Cluster (--arena kube)", "kube: ", nil},
		{"Results", "", []string{"out", "resume", "format", "output", "export", "json", "markdown"}},
	}
}

// groupOf is the index of the flag's group, or their number where it has none.
func groupOf(groups []flagGroup, flag *pflag.Flag) int {
	for i, g := range groups {
		if g.prefix != "" && strings.HasPrefix(flag.Usage, g.prefix) {
			return i
		}
	}
	for i, g := range groups {
		if slices.Contains(g.flags, flag.Name) {
			return i
		}
	}
	return len(groups)
}

// flagUsages describes the command's flags, under headings where it has
// --arena, in that many columns.
func flagUsages(c *cobra.Command, columns int) string {
	grouped := c.Flags().Lookup("arena") != nil
	if grouped {
		c.Flags().SortFlags = false // the order in which they are added is one to read
	}
	flags := c.LocalFlags()
	if !grouped {
		return "Flags:\n" + flags.FlagUsagesWrapped(columns)
	}
	groups := append(flagGroups(), flagGroup{title: "Other flags"})
	sets := make([]*pflag.FlagSet, len(groups))
	for i := range sets {
		sets[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
		sets[i].SortFlags = false
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		i := groupOf(flagGroups(), flag)
		shown := *flag
		shown.Usage = strings.TrimPrefix(flag.Usage, groups[i].prefix)
		if flag.Value.Type() == "stringToString" && shown.DefValue == "[]" {
			shown.DefValue = "" // pflag knows of all other types what is no default
		}
		sets[i].AddFlag(&shown)
	})
	var text []string
	for i, g := range groups {
		if sets[i].HasAvailableFlags() {
			text = append(text, g.title+":\n"+sets[i].FlagUsagesWrapped(columns))
		}
	}
	return strings.Join(text, "\n")
}

// oneList is how cobra's template shows the flags of a command.
const oneList = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"

// describeFlags makes the help of root and its commands show flags as
// flagUsages has them.
func describeFlags(root *cobra.Command) {
	usual := root.UsageFunc()
	template := root.UsageTemplate()
	root.SetUsageFunc(func(c *cobra.Command) error {
		flags := strings.TrimRight(flagUsages(c, console.Width(c.OutOrStdout())), "\n")
		c.SetUsageTemplate(strings.Replace(template, oneList, fmt.Sprintf("{{%q}}", flags), 1))
		return usual(c)
	})
}
