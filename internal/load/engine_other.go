//go:build !linux

package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errLinux = fmt.Errorf("load: the engine needs Linux (epoll and kernel timestamps): %w", errors.ErrUnsupported)

// Run runs a load; outside Linux it always fails with errors.ErrUnsupported.
func Run(context.Context, Config) (*Result, error) { return nil, errLinux }

// Session is an open load; for Linux only.
type Session struct{}

// Open fails as Run does.
func Open(context.Context, Config) (*Session, error) { return nil, errLinux }

// Slice fails as Run does.
func (*Session) Slice(context.Context, time.Duration, time.Duration, func(), func()) (*Result, error) {
	return nil, errLinux
}

// Close does nothing.
func (*Session) Close() {}
