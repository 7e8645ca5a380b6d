package kube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	apiPatience = 60 * time.Second // how long the API server may be away
	tryTimeout  = 20 * time.Second // of one request
)

// pauses are those between tries: they double up to a second.
var pauses = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: math.MaxInt}

// do makes a request again and again while the API server is away, for
// apiPatience. Its error says what was to be done.
func (cl *Cluster) do(ctx context.Context, what string, request func(context.Context) error) error {
	first := true
	return Retry(ctx, apiPatience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		if err := request(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}, func(err error) bool {
		// A server that has just come back may not know its users' rights yet.
		worth := transient(err) || !first && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
		first = false
		return worth
	})
}

// ask is do for a request that has an answer.
func ask[T any](ctx context.Context, cl *Cluster, what string, request func(context.Context) (T, error)) (answer T, err error) {
	err = cl.do(ctx, what, func(ctx context.Context) (err error) {
		answer, err = request(ctx)
		return err
	})
	return answer, err
}

// gone is nil for an object that is not there any more.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// made is nil for an object that is there already: an attempt before has made it,
// whose answer was lost.
func made(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Retry calls try until it succeeds, worth returns false for its error, or no
// more patience is left; with growing pauses. The patience does not end a try
// that is under way. Its error is that of the last try.
func Retry(ctx context.Context, patience time.Duration, try func(context.Context) error, worth func(error) bool) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := pauses.DelayFunc().Until(limited, true, true, func(context.Context) (done bool, _ error) {
		last = try(ctx)
		if last != nil && (ctx.Err() != nil || !worth(last)) {
			return false, last
		}
		return last == nil, nil
	})
	if last != nil && !errors.Is(err, last) && ctx.Err() == nil {
		return fmt.Errorf("%w (tried for %v)", last, patience)
	}
	return last
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
