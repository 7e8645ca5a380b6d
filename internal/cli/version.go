package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/result"
)

// version and commit are set when a build stamps them.
var version, commit string

// tool is this program as runs name it.
func tool() result.Tool {
	info, _ := debug.ReadBuildInfo()
	return toolOf(info, version, commit)
}

// toolOf is the tool by what the build stamped, else by what Go knows of the
// build: of `go install …@v1.2.3` that is the tag.
func toolOf(info *debug.BuildInfo, version, commit string) result.Tool {
	t := result.Tool{Name: "cnibench", Version: version, Commit: commit}
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if info.Main.Version != "(devel)" {
		t.Version = cmp.Or(t.Version, info.Main.Version)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			t.Commit = cmp.Or(t.Commit, s.Value)
		}
	}
	t.Version = cmp.Or(t.Version, "dev")
	return t
}

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
			fmt.Fprintf(c.OutOrStdout(), "cnibench %s (commit %s, %s, %s/%s)\n", t.Version, cmp.Or(t.Commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
