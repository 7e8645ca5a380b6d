package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/diagnose/collect"
	"github.com/cnibench/cnibench/internal/stat"
)

// The operations that package diagnose wants.
const (
	opSnapshot = "snapshot"
	opLookup   = "lookup"
)

// Snapshot returns how the endpoint's network namespace and machine are set up.
func (c *Client) Snapshot(ctx context.Context) (diagnose.Snapshot, error) {
	s, err := call[diagnose.Snapshot](ctx, c, opSnapshot, none{}, 0)
	s.Endpoint = c.name
	return s, err
}

func (s *server) snapshot(context.Context, none) (diagnose.Snapshot, error) {
	return collect.Snapshot()
}

// Lookups asks for names to be looked up, one after the other.
type Lookups struct {
	Server netip.AddrPort `json:"server"` // the zero value asks as the endpoint's resolv.conf says
	Name   string         `json:"name"`
	Count  int            `json:"count"`
}

const maxLookups = 1000

func (l *Lookups) complete() error {
	if l.Count < 1 || l.Count > maxLookups || l.Name == "" {
		return fmt.Errorf("%d look-ups of %q: want 1 to %d of a name", l.Count, l.Name, maxLookups)
	}
	return nil
}

// Looked is what look-ups gave. Times are in seconds.
type Looked struct {
	Count   int     `json:"count"`
	P50     float64 `json:"p50"`
	Max     float64 `json:"max"`
	Late    float64 `json:"late"`    // share that took longer than lateLookup
	Failed  float64 `json:"failed"`  // share without an answer; "no such name" is one
	Queries float64 `json:"queries"` // sent per look-up
	Error   string  `json:"error,omitempty"`
}

// A look-up that takes longer was asked twice: resolvers wait for 1 s or more.
const (
	lateLookup    = 900 * time.Millisecond
	lookupTimeout = 3 * time.Second
)

// Lookup looks names up at the endpoint. That they are not found is a result.
func (c *Client) Lookup(ctx context.Context, l Lookups) (Looked, error) {
	return call[Looked](ctx, c, opLookup, l, time.Duration(l.Count)*lookupTimeout)
}

func lookup(ctx context.Context, l Lookups) (out Looked, err error) {
	var sent atomic.Int64
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		sent.Add(1)
		if l.Server.IsValid() {
			address = l.Server.String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	var times []float64
	for range l.Count {
		if ctx.Err() != nil {
			break
		}
		out.Count++
		limited, cancel := context.WithTimeout(ctx, lookupTimeout)
		begin := time.Now()
		_, err := r.LookupHost(limited, l.Name)
		took := time.Since(begin)
		cancel()
		var failure *net.DNSError
		if err != nil && !(errors.As(err, &failure) && failure.IsNotFound) {
			out.Failed++
			out.Error = cmp.Or(out.Error, err.Error())
			continue
		}
		if took > lateLookup {
			out.Late++
		}
		times = append(times, took.Seconds())
	}
	n := float64(max(1, out.Count))
	out.Late, out.Failed, out.Queries = out.Late/n, out.Failed/n, float64(sent.Load())/n
	if len(times) > 0 {
		out.P50, out.Max = stat.Median(times), slices.Max(times)
	}
	return out, nil
}
