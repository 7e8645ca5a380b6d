//go:build !linux

package load

import (
	"context"
	"errors"
	"fmt"
)

// HTTP runs a load; outside Linux it always fails with errors.ErrUnsupported.
func HTTP(context.Context, HTTPConfig) (*Result, error) {
	return nil, fmt.Errorf("load: the engine needs Linux (epoll and kernel timestamps): %w", errors.ErrUnsupported)
}
