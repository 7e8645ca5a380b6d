package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/load/slicing"
)

// sliced is an opened load of this program: `cnibench load … --slices`.
type sliced struct {
	*loader
	client  *program
	orders  *os.File
	answers *io.PipeReader
	slicer  *slicing.Client
	slices  []json.RawMessage // the report of each slice; nil if it failed
	failed  bool              // a slice or the start has failed and returned its error
}

// open starts the server and the client, and waits until the connections are open.
func (e engine) open(ctx context.Context, s *Session) (Slicer, error) {
	l, err := e.start(ctx, s)
	if err != nil {
		return nil, err
	}
	o := &sliced{loader: l}
	if err := o.connect(); err != nil {
		return nil, l.end(err)
	}
	return o, nil
}

// openPaced is open at the rate that the parameters ask for.
func (e engine) openPaced(ctx context.Context, s *Session) (Slicer, error) {
	e.pace = paceOf(s.Params)
	return e.open(ctx, s)
}

// connect starts the client.
func (o *sliced) connect() error {
	// A pipe of the kernel: with another reader, a goroutine would copy orders to the
	// client, and would still wait for them after the client's end.
	in, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	answers, out := io.Pipe()
	client, err := o.programs.startBetween(in, out, o.programs.s.Client, "client", ".json", o.argv(append([]string{"--slices"}, o.engine.pace...)...)...)
	if err != nil {
		return errors.Join(err, in.Close(), orders.Close())
	}
	o.client, o.orders, o.answers, o.slicer = client, orders, answers, slicing.NewClient(orders, answers)
	go func() {
		o.awaitClient(client)
		_, _ = in.Close(), out.Close() // the client was their only user
	}()
	if err := o.slicer.Ready(); err != nil {
		err = o.explain(err)
		return errors.Join(err, orders.Close())
	}
	return nil
}

// explain ends the client and returns why it did not answer.
func (o *sliced) explain(err error) error {
	o.failed = true
	if !errors.Is(err, slicing.ErrEnded) {
		o.client.kill()       // its answer was not understood
		_ = o.answers.Close() // never fails
		<-o.client.exited
		return err
	}
	<-o.client.exited
	if failed := o.client.failure(); failed != nil {
		return failed // the missing answer is a consequence of this error
	}
	return err
}

// Slice implements Slicer.
func (o *sliced) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (Slice, error) {
	slice, report, err := o.take(ctx, lead, length, begin, end)
	o.slices = append(o.slices, report)
	if err != nil {
		err = fmt.Errorf("%s: %w", o.engine.workload, err)
	}
	return slice, err
}

func (o *sliced) take(ctx context.Context, lead, length time.Duration, begin, end func()) (Slice, json.RawMessage, error) {
	// An order can't be taken back, so the client is killed when the context ends.
	defer context.AfterFunc(ctx, o.client.kill)()
	report, err := o.slicer.Slice(lead, length, begin, end)
	switch {
	case err == nil:
		slice, err := o.engine.reports.slice(report)
		return slice, report, err
	case ctx.Err() != nil:
		o.failed = true
		return Slice{}, nil, fmt.Errorf("ended before the load had: %w", ctx.Err())
	}
	return Slice{}, nil, o.explain(err)
}

// Close implements Slicer.
func (o *sliced) Close(isUsed func(slice int) bool) (Outcome, error) {
	err := o.orders.Close()
	if o.programs.await(time.Now().Add(stopPatience), o.client) != nil {
		o.client.kill() // alone: its slices are whole, and the server's end would spoil them
		<-o.client.exited
	} else if !o.failed {
		err = errors.Join(err, o.client.failure())
	}
	var used []json.RawMessage
	for i, report := range o.slices {
		if report != nil && (isUsed == nil || isUsed(i)) {
			used = append(used, report)
		}
	}
	var out Outcome
	if len(used) > 0 {
		var mergeErr error
		out, mergeErr = o.engine.reports.merge(used)
		err = errors.Join(err, mergeErr)
	}
	return out, o.end(err)
}
