// Package interrupt ends commands by a signal. It knows no command and imports nothing
// that is large: the program for pods uses it. Next: interrupt.go.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Context is a context of the command that ends with the first SIGINT or SIGTERM. The
// second one ends the program at once.
func Context(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
