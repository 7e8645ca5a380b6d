package slicing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Load is a load whose connections are open.
type Load interface {
	// Slice takes one slice, and calls begin and end at its borders, one after the
	// other.
	Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (report any, err error)
}

// longest is the longest that a slice may be with its lead.
const longest = 24 * time.Hour

// Serve takes orders from in until in ends. Errors: those of the load, of out, of
// orders that are none, and ctx's when ctx ends first.
func Serve(ctx context.Context, in io.Reader, out io.Writer, l Load) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(answer{Event: ready}); err != nil {
		return err
	}
	orders := read(ctx, in)
	for {
		var o received
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o = <-orders:
		}
		if errors.Is(o.err, io.EOF) {
			return nil
		}
		lead, length, err := o.times()
		if err != nil {
			return fmt.Errorf("slices: %w", err)
		}
		var broken error // begin and end come one after the other, before Slice returns
		border := func(e event) func() {
			return func() { broken = errors.Join(broken, answers.Encode(answer{Event: e})) }
		}
		report, err := l.Slice(ctx, lead, length, border(begin), border(end))
		if err = errors.Join(err, broken); err != nil {
			return err
		}
		text, err := json.Marshal(report)
		if err != nil {
			return err
		}
		if err := answers.Encode(answer{Event: slice, Report: text}); err != nil {
			return err
		}
	}
}

// received is an order, or why there is none.
type received struct {
	order
	err error
}

func (r received) times() (lead, length time.Duration, err error) {
	if r.err != nil {
		return 0, 0, fmt.Errorf("read an order: %w", r.err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
	if !(r.Lead >= 0 && r.Length > 0 && r.Lead+r.Length <= longest.Seconds()) {
		return 0, 0, fmt.Errorf("a slice of %v s after %v s: the length is above 0, both together are at most %v", r.Length, r.Lead, longest)
	}
	return seconds(r.Lead), seconds(r.Length), nil
}

// read reads orders in a goroutine of its own, since a read cannot be ended. The
// goroutine ends with ctx or in; the last thing that it sends is an error.
func read(ctx context.Context, in io.Reader) <-chan received {
	orders := make(chan received)
	go func() {
		lines := json.NewDecoder(in)
		lines.DisallowUnknownFields()
		for {
			var r received
			r.err = lines.Decode(&r.order)
			select {
			case orders <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				return
			}
		}
	}()
	return orders
}
