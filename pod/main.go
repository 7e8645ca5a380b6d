// Command pod is what cnibench runs in pods of a cluster: the agent, the load engine, the
// servers and the recorder, without what a laptop needs. cnibench carries it into pods
// whose image lacks it. Next: internal/cli/inside.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/inside"
	"github.com/cnibench/cnibench/internal/cli/loadcmd"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/text"
)

// version is set when a build stamps it.
var version = "dev"

func main() {
	if err := newRoot().ExecuteContext(context.Background()); err != nil {
		code, message := exit.Code(err), err.Error()
		if message != "" {
			fmt.Fprintln(os.Stderr, "cnibench: "+text.Safe(message))
		}
		os.Exit(code)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{Use: "cnibench", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(inside.Agent(version), inside.Fingerprint(), tunecmd.New(nil), loadcmd.Load(), loadcmd.Serve())
	return root
}
