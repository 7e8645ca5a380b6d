package inside

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/fingerprint"
	"github.com/cnibench/cnibench/internal/host"
)

// Fingerprint is hidden: a run starts it at a node of the arena, so that
// namespaced values are the node's.
func Fingerprint() *cobra.Command {
	opt := fingerprint.Options{Runner: host.Local{}}
	c := &cobra.Command{
		Use:    "fingerprint",
		Short:  "Print the environment that explains a result, as JSON",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			opt.CNIPath = host.CNIPath()
			out := json.NewEncoder(c.OutOrStdout())
			out.SetIndent("", "  ")
			out.SetEscapeHTML(false)
			return out.Encode(fingerprint.Collect(c.Context(), os.DirFS("/"), opt))
		},
	}
	c.Flags().StringVar(&opt.Uplink, "uplink", "eth0", "the interface towards the other nodes")
	return c
}
