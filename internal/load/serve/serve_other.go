//go:build !linux

package serve

import (
	"context"
	"errors"
	"fmt"
)

var errOther = fmt.Errorf("the servers need Linux's epoll: %w", errors.ErrUnsupported)

type socket struct{}

func (*Server) listen() error               { return errOther }
func (*Server) serve(context.Context) error { return errOther }
