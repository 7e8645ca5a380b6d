package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text/console"
)

// flagGroup is a heading in the help of commands that have --arena. A flag is in the group if
// its usage begins with the prefix or it is named.
type flagGroup struct {
	title, prefix string
	flags         []string
}

func flagGroups() []flagGroup {
	return []flagGroup{
		{"What", "", []string{
			"study", "scale", "suite", "step", "steps", "set", "contenders", "contender", "baseline", "profile", "sysctl", "machine", "nic",
			"arena", "nodes", "mtu", "line-rate", "services", "rates", "rates-from", "max-rate", "check", "case", "hold", "packages", "cache", "force", "plan", "config", "under-load", "all",
		}},
		{"How long", "", []string{"rounds", "until", "max-time", "duration", "warmup", "slice", "seed", "cycles", "repeat", "spread"}},
		{"Watching (--watch)", "watch: ", nil},
		{"Lab (--arena auto, lab or microvm)", "lab: ", nil},
		{"microVM (for what runs in a guest)", "microvm: ", nil},
		{"Cluster (--arena kube)", clusterPrefix, nil},
		{"Results", "", []string{"out", "resume", "format", "output", "export", "json", "markdown", "save", "issue"}},
	}
}

// groupOf returns the index of the flag's group, or the number of groups if it has none.
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

// flagUsages describes the command's flags in that many columns. It adds headings if the
// command has --arena.
func flagUsages(c *cobra.Command, columns int) string {
	grouped := c.Flags().Lookup("arena") != nil
	if grouped {
		c.Flags().SortFlags = false // the order in which they were added is meant to be read
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
			shown.DefValue = "" // pflag hides the empty default of all other types
		}
		sets[i].AddFlag(&shown)
	})
	var text []string
	for i, g := range groups {
		if g.prefix == clusterPrefix && sets[i].HasAvailableFlags() {
			if names := namesOf(sets[i]); len(names) > 4 {
				text = append(text, g.title+", described by cnibench help cluster:\n"+wrapFlags(names, columns))
				continue
			}
		}
		if sets[i].HasAvailableFlags() {
			text = append(text, g.title+":\n"+sets[i].FlagUsagesWrapped(columns))
		}
	}
	return strings.Join(text, "\n")
}

// oneList is how cobra's template shows the flags of a command.
const oneList = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"

// describeFlags makes the help of root and its commands describe flags with flagUsages.
func describeFlags(root *cobra.Command) {
	usual := root.UsageFunc()
	template := root.UsageTemplate()
	root.SetUsageFunc(func(c *cobra.Command) error {
		flags := strings.TrimRight(flagUsages(c, console.Width(c.OutOrStdout())), "\n")
		c.SetUsageTemplate(strings.Replace(template, oneList, fmt.Sprintf("{{%q}}", flags), 1))
		return usual(c)
	})
}

// clusterPrefix begins the usage of flags for clusters.
const clusterPrefix = "kube: "

// clusterHelp returns the help topic that describes the flags for clusters, which many
// commands have.
func clusterHelp() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Flags that the commands have for a cluster (--arena kube)",
		Long: `With --arena kube a command works on a Kubernetes cluster. It makes pods in a namespace of
its own and removes them at the end. The flags below are those of run, check, probe,
selftest and tune; each command's --help lists the ones that it has. docs/kubernetes.md
says more.`,
	}
	var k run.Cluster
	clusterflags.AddConnection(c, &k)
	clusterflags.AddPods(c, &k)
	clusterflags.AddInstall(c, &k)
	c.Flags().SortFlags = false
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		flag.Usage = strings.TrimPrefix(flag.Usage, clusterPrefix)
		if flag.DefValue == "[]" {
			flag.DefValue = ""
		}
	})
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { // cobra prints no flags of a topic
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s", c.Long, flagUsages(c, console.Width(c.OutOrStdout())))
	})
	return c
}

// namesOf returns the set's visible flags as they are typed.
func namesOf(set *pflag.FlagSet) []string {
	var names []string
	set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, "--"+flag.Name)
		}
	})
	return names
}

// wrapFlags returns the names in lines of at most that many columns; 0 is no limit.
func wrapFlags(names []string, columns int) string {
	var b strings.Builder
	at := 0
	for _, name := range names {
		if at > 0 && columns > 0 && at+len(name)+1 > columns {
			b.WriteString("\n")
			at = 0
		}
		indent := " "
		if at == 0 {
			indent = "      "
		}
		b.WriteString(indent + name)
		at += len(indent) + len(name)
	}
	return b.String() + "\n"
}

// groupCommands gives each command the heading under which the help lists it.
func groupCommands(root *cobra.Command) {
	for _, g := range []struct{ title, commands string }{
		{"Measure:", "run probe selftest doctor diagnose mesh"},
		{"Decide:", "report explore recommend compare verify import"},
		{"Check:", "check"},
		{"Tune:", "tune"},
		{"Tools:", "list load serve record vm enter clean rbac version completion help"},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpCommandGroupID("Tools:")
	root.SetCompletionCommandGroupID("Tools:")
}
