package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

// InsideCommand is the hidden command with which a process of this program takes a task
// over. It reads a handOver from standard input and writes an answer to standard output,
// both as JSON: nothing crosses the border as an argument or in the environment.
const InsideCommand = "inside"

// Verb is something that is done in a venue: measure, check, probe. T is the task and A
// its answer; both must survive a round trip through JSON.
type Verb[T, A any] struct {
	Name string
	// Do carries the task out. It runs where the venue can be opened: inside the lab's
	// namespaces, or in the user's own process for a cluster. Its context ends at the first
	// signal of host.EndSignals.
	Do func(ctx context.Context, in *Inside, task T) (A, error)
	// Beside, if set, starts what works beside the lab, outside of its namespaces and under
	// the same kernel, and returns the function that ends it.
	Beside func(in *Inside, task T) (stop func())
}

// AnyVerb is a Verb whatever its task and its answer are.
type AnyVerb interface {
	name() string
	carryOut(ctx context.Context, in *Inside, task json.RawMessage) (any, error)
	startBeside(in *Inside, task json.RawMessage) (stop func(), err error)
}

// Inside is what a task knows of the place where it is carried out.
type Inside struct {
	Venue Venue
	Lab   lab.Options // of a lab
	Guest *vm.Facts   // of the guest that this process runs in; nil outside of guests
}

// In takes the task to the venue and returns the answer. The
// answer may be partly filled in if there is an error. The error has the exit code that
// it had where it arose; it is a lostError if the process that carried the task out ended
// without an answer.
func (v Verb[T, A]) In(ctx context.Context, venue Venue, task T) (A, error) {
	var got A
	text, err := json.Marshal(task)
	if err != nil {
		return got, fmt.Errorf("hand over %s: %w", v.Name, err)
	}
	a, err := venue.carry(ctx, v, &handOver{Verb: v.Name, Task: text})
	if err != nil {
		return got, err
	}
	if len(a.Answer) > 0 {
		if err := json.Unmarshal(a.Answer, &got); err != nil {
			return got, fmt.Errorf("answer of %s: %w", v.Name, err)
		}
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

func (v Verb[T, A]) startBeside(in *Inside, text json.RawMessage) (func(), error) {
	if v.Beside == nil {
		return func() {}, nil
	}
	task, err := v.decode(text)
	if err != nil {
		return nil, err
	}
	return v.Beside(in, task), nil
}

func (v Verb[T, A]) decode(text json.RawMessage) (task T, err error) {
	err = strictJSON(bytes.NewReader(text), &task)
	return task, err
}

// Where the process is that takes a task over.
const (
	atGuest = "guest" // it starts the lab there
	atLab   = "lab"   // it carries the task out
)

// handOver is what a process hands to the next one on the way to the venue. All of it is
// decided by the process that the user started.
type handOver struct {
	At    string          `json:"at"`
	Verb  string          `json:"verb"`
	Task  json.RawMessage `json:"task"`
	Lab   lab.Options     `json:"lab"`
	Guest *vm.Facts       `json:"guest,omitempty"` // in which the lab is
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

// readAnswer reads the answer of a process that ended with the exit code.
func readAnswer(from *bytes.Buffer, code int, who string) (*answer, error) {
	a := &answer{}
	if err := strictJSON(from, a); err != nil {
		return nil, lostError{fmt.Errorf("the process in the %s ended with exit code %d and without an answer", who, code)}
	}
	return a, nil
}

func strictJSON(from io.Reader, to any) error {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// TakeOver reads a hand-over, carries its task out or takes it on to the lab, and writes
// the answer. It is an error of usage if there is no such hand-over: only this program
// itself calls the command.
func TakeOver(ctx context.Context, from io.Reader, to io.Writer, verbs []AnyVerb) error {
	var h handOver
	if err := strictJSON(from, &h); err != nil {
		return exit.Usage("%s: %v; cnibench itself starts this command", InsideCommand, err)
	}
	var verb AnyVerb
	for _, v := range verbs {
		if v.name() == h.Verb {
			verb = v
		}
	}
	if verb == nil {
		return exit.Usage("%s: no task %q; cnibench itself starts this command", InsideCommand, h.Verb)
	}
	var a *answer
	switch h.At {
	case atGuest:
		var err error
		if a, err = contain(ctx, verb, &h); err != nil {
			a = newAnswer(nil, err)
		}
	case atLab:
		a = carryOutInLab(ctx, verb, &h)
	default:
		return exit.Usage("%s: no place %q; cnibench itself starts this command", InsideCommand, h.At)
	}
	return json.NewEncoder(to).Encode(a)
}

func carryOutInLab(ctx context.Context, verb AnyVerb, h *handOver) *answer {
	if err := lab.Enter(); err != nil {
		return newAnswer(nil, err)
	}
	ctx, stop := UntilEnded(ctx)
	defer stop()
	in := &Inside{Venue: newLab(h.Lab, h.Guest), Lab: h.Lab, Guest: h.Guest}
	return newAnswer(verb.carryOut(ctx, in, h.Task))
}

// contain takes the task into the namespaces of the lab.
func contain(ctx context.Context, verb AnyVerb, h *handOver) (*answer, error) {
	stop, err := verb.startBeside(&Inside{Lab: h.Lab, Guest: h.Guest}, h.Task)
	if err != nil {
		return nil, err
	}
	defer stop()
	inner := *h
	inner.At = atLab
	text, err := json.Marshal(&inner)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	code, err := lab.ContainProgram(ctx, lab.Program{
		Args: []string{InsideCommand}, Stdin: bytes.NewReader(text), Stdout: &out, HostNetwork: h.Lab.NICDriver != "",
	})
	if err != nil {
		var killed *lab.Killed
		if errors.As(err, &killed) {
			err = lostError{err}
		}
		return nil, err
	}
	return readAnswer(&out, code, "lab")
}
