package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachFlag calls use with every flag of every command below c.
func eachFlag(c *cobra.Command, use func(c *cobra.Command, flag *pflag.Flag)) {
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) { use(c, flag) })
	for _, sub := range c.Commands() {
		eachFlag(sub, use)
	}
}

// The first text in backquotes is a flag's placeholder, so that a quoted command
// line would become one.
func TestPlaceholdersAreWords(t *testing.T) {
	seen := 0
	eachFlag(Root(), func(c *cobra.Command, flag *pflag.Flag) {
		seen++
		name, text := pflag.UnquoteUsage(flag)
		if strings.ContainsAny(name, " \t`") {
			t.Errorf("%s --%s: placeholder %q is no word", c.CommandPath(), flag.Name, name)
		}
		if strings.Contains(text, "`") {
			t.Errorf("%s --%s: more in backquotes than the placeholder: %s", c.CommandPath(), flag.Name, text)
		}
	})
	if seen < 100 {
		t.Errorf("%d flags were found", seen)
	}
}

func TestFlagsHaveAGroup(t *testing.T) {
	groups := flagGroups()
	eachFlag(Root(), func(c *cobra.Command, flag *pflag.Flag) {
		if c.Flags().Lookup("arena") != nil && flag.Name != "help" && !flag.Hidden && groupOf(groups, flag) == len(groups) {
			t.Errorf("%s --%s: no heading of the help is for it; flagGroups has the headings", c.CommandPath(), flag.Name)
		}
	})
}

func TestHelpHasGroups(t *testing.T) {
	var out bytes.Buffer
	root := Root()
	root.SetOut(&out)
	root.SetArgs([]string{"run", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{
		"Examples:\n", "\nWhat:\n", "--suite suite ", "\nHow long:\n", "--rounds number ", "\nLab (", "--keep  ", "\nmicroVM (", "--kernel version ",
		"\nCluster (", "help cluster", "--kubeconfig ", "\nResults:\n", "--out directory ",
	} {
		at := strings.Index(out.String(), want)
		if at < last {
			t.Errorf("%q is not where it belongs, or not there at all:\n%s", want, out.String())
		}
		last = at
	}
	for _, unwanted := range []string{"\nFlags:\n", "default []", "default )", "kube: ", "lab: "} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, out.String())
		}
	}
}
