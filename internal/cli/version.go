package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/result"
)

// version is set when a release is linked.
var version = "dev"

// tool is this program as runs name it.
func tool() result.Tool {
	t := result.Tool{Name: "cnibench", Version: version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				t.Commit = s.Value
			}
		}
	}
	if commit != "" {
		t.Commit = commit
	}
	return t
}

// commit is set when the build stamps it.
var commit string

func newVersionCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := tool()
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{
					"name": t.Name, "version": t.Version, "commit": t.Commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			fmt.Fprintf(c.OutOrStdout(), "cnibench %s (commit %s, %s, %s/%s)\n", t.Version, orUnknown(t.Commit), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
