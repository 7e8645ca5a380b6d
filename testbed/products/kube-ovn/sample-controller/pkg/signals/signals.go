// Package signals stands in for that of k8s.io/sample-controller, which is not served.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SetupSignalHandler returns a context that ends with the first SIGTERM or SIGINT; the second
// one ends the program.
func SetupSignalHandler() context.Context {
	ctx, end := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		end()
		<-got
		os.Exit(1)
	}()
	return ctx
}
