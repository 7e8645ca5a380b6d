package kube

import (
	"cmp"
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
	apiPatience = 60 * time.Second // how long the API server may not answer
	tryTimeout  = 20 * time.Second // of one request
)

// pauses between tries double up to a second.
var pauses = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: math.MaxInt}

// do makes a request, and repeats it for apiPatience while the API server does not answer.
// The error begins with what, the purpose of the request.
func (cl *Cluster) do(ctx context.Context, what string, request func(context.Context) error) error {
	first := true
	return Retry(ctx, apiPatience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(cl.Options.RequestTimeout, tryTimeout))
		defer cancel()
		if err := request(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}, func(err error) bool {
		// A server that has just started may not know its users' rights yet.
		mayPass := transient(err) || !first && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
		if first && mayPass {
			cl.Options.log("%v; asked again for up to %v", err, apiPatience)
		}
		first = false
		return mayPass
	})
}

// ask does the same as do, and returns the request's answer.
func ask[T any](ctx context.Context, cl *Cluster, what string, request func(context.Context) (T, error)) (answer T, err error) {
	err = cl.do(ctx, what, func(ctx context.Context) (err error) {
		answer, err = request(ctx)
		return err
	})
	return answer, err
}

// ignoreNotFound returns nil for the error that an object does not exist.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ignoreExists returns nil for the error that an object exists: an earlier try, whose
// answer was lost, has made it.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Retry calls try, with growing pauses, until it succeeds, mayPass returns false for its
// error, or patience is over. The end of patience does not interrupt a try. The error is
// that of the last try.
func Retry(ctx context.Context, patience time.Duration, try func(context.Context) error, mayPass func(error) bool) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := pauses.DelayFunc().Until(limited, true, true, func(context.Context) (done bool, _ error) {
		last = try(ctx)
		if last != nil && (ctx.Err() != nil || !mayPass(last)) {
			return false, last
		}
		return last == nil, nil
	})
	if last != nil && !errors.Is(err, last) && ctx.Err() == nil {
		return fmt.Errorf("%w (tried for %v)", last, patience)
	}
	return last
}

// NamespaceTooNew reports whether the API server refused a pod because the pod's namespace
// is so new that it has no service account yet. The next try may succeed.
func NamespaceTooNew(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// transient reports whether the same request may succeed later: the server does not
// answer, is overloaded, or was cut off.
func transient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= 500 || NamespaceTooNew(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}
