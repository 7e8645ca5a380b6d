package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// Verb is something that is done in a venue: survey, measure, check. T is the task and A
// its answer; both must survive a round trip through JSON.
type Verb[T, A any] struct {
	Name string
	// Do carries the task out. It runs where the venue can be opened: inside the lab's
	// namespaces, or in the user's own process for a cluster. Its context ends at the first
	// signal of host.EndSignals.
	Do func(ctx context.Context, in *Inside, task T) (A, error)
	// Beside, if set, starts what works beside the lab, outside of its namespaces and under
	// the same kernel, and returns the function that ends it.
	Beside func(task T) (stop func())
}

// AnyVerb is a Verb whatever its task and its answer are.
type AnyVerb interface {
	name() string
	carryOut(ctx context.Context, in *Inside, task json.RawMessage) (any, error)
	startBeside(task json.RawMessage) (stop func(), err error)
}

// Inside is what a task knows of the place where it is carried out.
type Inside struct {
	Venue  Venue
	Files  []*os.File // those of InWith
	opened *Opened    // by the survey, for the measurement after it
}

// In lets a worker in the venue carry the task out, and returns the answer, which may be
// partly filled in if there is an error. The error has the exit code that it had where it
// arose; it is a lostError if the worker's process ended without an answer.
func (v Verb[T, A]) In(ctx context.Context, venue Venue, task T) (got A, err error) {
	return v.InWith(ctx, venue, task)
}

// InWith does the same and gives the task open files: an output, a socket that listens outside
// of the lab. They do not get into guests.
func (v Verb[T, A]) InWith(ctx context.Context, venue Venue, task T, files ...*os.File) (got A, err error) {
	w, err := venue.start(ctx, files...)
	if err != nil {
		return got, err
	}
	return v.Last(w, task)
}

// Last lets the worker carry the task out, as by does, and ends the worker.
func (v Verb[T, A]) Last(w *Worker, task T) (A, error) {
	got, err := v.by(w, task)
	return got, errors.Join(err, w.end())
}

// by lets the worker carry the task out, and returns the answer as In does.
func (v Verb[T, A]) by(w *Worker, task T) (got A, err error) {
	text, err := json.Marshal(task)
	if err != nil {
		return got, fmt.Errorf("hand over %s: %w", v.Name, err)
	}
	a, err := w.carryOut(v, &order{Verb: v.Name, Task: text})
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(a.Answer, &got); len(a.Answer) > 0 && err != nil {
		return got, fmt.Errorf("answer of %s: %w", v.Name, err)
	}
	return got, a.err()
}

func (v Verb[T, A]) name() string { return v.Name }

func (v Verb[T, A]) carryOut(ctx context.Context, in *Inside, text json.RawMessage) (any, error) {
	task, err := v.decode(text)
	if err != nil {
		return nil, err
	}
	return v.Do(ctx, in, task)
}

func (v Verb[T, A]) startBeside(text json.RawMessage) (func(), error) {
	if v.Beside == nil {
		return func() {}, nil
	}
	task, err := v.decode(text)
	if err != nil {
		return nil, err
	}
	return v.Beside(task), nil
}

func (v Verb[T, A]) decode(text json.RawMessage) (task T, err error) {
	err = strictJSON(bytes.NewReader(text)).Decode(&task)
	return task, err
}

func strictJSON(from io.Reader) *json.Decoder {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return d
}

// order is a task as a worker takes it over.
type order struct {
	Verb string          `json:"verb"`
	Task json.RawMessage `json:"task"`
}

// answer is what comes back.
type answer struct {
	Code   int             `json:"code"`
	Error  string          `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

func newAnswer(value any, err error) *answer {
	a := &answer{Code: exit.Code(err)}
	if err != nil {
		a.Error = err.Error()
	}
	text, jsonErr := json.Marshal(value)
	if jsonErr != nil {
		return &answer{Code: exit.Failed, Error: errors.Join(err, jsonErr).Error()}
	}
	a.Answer = text
	return a
}

func (a *answer) err() error {
	switch {
	case a.Error != "":
		return exit.With(a.Code, errors.New(a.Error))
	case a.Code != exit.Done:
		return exit.With(a.Code, nil)
	}
	return nil
}

// lostError is the error of a process that ended without an answer.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }
