package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	apiPatience = 60 * time.Second // how long the API server may be away
	tryTimeout  = 20 * time.Second // of one request
	firstPause  = 250 * time.Millisecond
	mostPause   = 5 * time.Second
)

// do makes a request again and again while the API server is away, for
// apiPatience. Its error says what was to be done.
func (cl *Cluster) do(ctx context.Context, what string, request func(context.Context) error) error {
	return retry(ctx, apiPatience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		if err := request(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}, func(err error, again bool) bool {
		// A server that has just come back may not know its users' rights yet.
		return transient(err) || again && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
	})
}

// retry calls try until it succeeds, its error is worth no other try, or the
// patience is over, with growing pauses; again is that it is not the first.
func retry(ctx context.Context, patience time.Duration, try func(context.Context) error, worth func(err error, again bool) bool) error {
	begin, pause := time.Now(), firstPause
	for n := 0; ; n++ {
		err := try(ctx)
		if err == nil || ctx.Err() != nil || !worth(err, n > 0) {
			return err
		}
		if time.Since(begin)+pause > patience {
			return fmt.Errorf("%w (tried for %v)", err, patience)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// Unborn says that the API server refuses a pod because its namespace is so new
// that it has no service account yet: the same may succeed a moment later.
func Unborn(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// transient says that the same request may succeed later: the server is away
// or overloaded, or the way to it was cut.
func transient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= 500 || Unborn(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}
