//go:build !linux

package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

var errLinux = fmt.Errorf("stream: needs Linux: %w", errors.ErrUnsupported)

// Sink is for Linux only.
type Sink struct{}

// NewSink fails.
func NewSink(string) (*Sink, error) { return nil, errLinux }

// Addr is nil.
func (*Sink) Addr() net.Addr { return nil }

// Serve fails.
func (*Sink) Serve(context.Context) error { return errLinux }

// Sender is for Linux only.
type Sender struct{}

// Connect fails.
func Connect(context.Context, Config) (*Sender, error) { return nil, errLinux }

// Slice fails.
func (*Sender) Slice(context.Context, time.Duration, time.Duration, func(), func()) (Slice, error) {
	return Slice{}, errLinux
}

// Close does nothing.
func (*Sender) Close() error { return nil }
