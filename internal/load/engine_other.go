//go:build !linux

package load

import (
	"context"
	"errors"
	"fmt"
)

// Run runs a load; outside Linux it always fails with errors.ErrUnsupported.
func Run(context.Context, Config) (*Result, error) {
	return nil, fmt.Errorf("load: the engine needs Linux (epoll and kernel timestamps): %w", errors.ErrUnsupported)
}
