package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

// InsideCommand is the hidden command with which a process of this program becomes a worker.
// Standard input says where it is, and then one task after the other; the answers go to
// standard output. All of it is JSON: nothing crosses the border as an argument or in the
// environment.
const InsideCommand = "inside"

// Worker carries tasks out in a venue, one after the other: it is a process of this program
// in the lab's namespaces or in a guest, or for a cluster this process.
type Worker struct {
	Guest *vm.Facts // of the guest that it is in; nil outside of guests

	carryOut func(verb AnyVerb, o *order) (*answer, error)
	end      func() error
}

// place is where a worker is.
type place struct {
	At    string      `json:"at"`
	Lab   lab.Options `json:"lab"`
	Guest *vm.Facts   `json:"guest,omitempty"` // in which the lab is
	// Inherit is how many open files the process inherits, for the tasks.
	Inherit int `json:"inherit,omitempty"`
}

const (
	atGuest = "guest" // it starts the lab there, and a worker inside that
	atLab   = "lab"   // it carries tasks out itself
)

// newWorker returns this process as a worker. end is called last.
func newWorker(ctx context.Context, in *Inside, end func()) *Worker {
	return &Worker{
		carryOut: func(verb AnyVerb, o *order) (*answer, error) { return newAnswer(verb.carryOut(ctx, in, o.Task)), nil },
		end:      func() error { end(); return nil },
	}
}

// startWorker starts a process of this program as a worker. run starts it with that standard
// input and output, and returns its exit code.
func startWorker(at place, run func(stdin, stdout *os.File) (int, error)) (*Worker, error) {
	stdin, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), to.Close())
	}
	code, ended := 0, make(chan struct{})
	go func() {
		code, err = run(stdin, stdout)
		stdin.Close()
		stdout.Close()
		close(ended)
	}()
	orders, answers := json.NewEncoder(to), strictJSON(from)
	wait := func() error {
		to.Close()
		_, _ = io.Copy(io.Discard, from)
		<-ended
		from.Close()
		why := err
		err = nil // said once
		return why
	}
	_ = orders.Encode(at) // the orders fail once the process has ended, maybe after an answer
	return &Worker{
		Guest: at.Guest,
		carryOut: func(verb AnyVerb, o *order) (*answer, error) {
			if at.At == atLab {
				stop, err := verb.startBeside(o.Task)
				if err != nil {
					return nil, err
				}
				defer stop()
			}
			var a answer
			_ = orders.Encode(o)
			if answers.Decode(&a) == nil {
				return &a, nil
			}
			if err := wait(); err != nil {
				return nil, err
			}
			return nil, lostError{fmt.Errorf("the process in the %s ended with exit code %d and without an answer", at.At, code)}
		},
		end: wait,
	}, nil
}

// start implements Venue: the worker is in the namespaces of a lab.
func (p *labVenue) start(ctx context.Context, files ...*os.File) (*Worker, error) {
	return startWorker(place{At: atLab, Lab: p.options, Guest: p.guest, Inherit: len(files)}, func(stdin, stdout *os.File) (int, error) {
		code, err := lab.ContainProgram(ctx, lab.Program{
			Args: []string{InsideCommand}, Stdin: stdin, Stdout: stdout, HostNetwork: p.options.NICDriver != "", Files: files,
		})
		if killed := (*lab.Killed)(nil); errors.As(err, &killed) {
			err = lostError{err}
		}
		return code, err
	})
}

// Serve makes this process a worker: it reads where it is and then tasks, and writes their
// answers, until there are no more. It is an error of usage if it can't read them: only this
// program itself calls the command.
func Serve(ctx context.Context, from io.Reader, to io.Writer, verbs []AnyVerb) error {
	orders := strictJSON(from)
	var at place
	if err := orders.Decode(&at); err != nil {
		return notHandedOver("%w", err)
	}
	var w *Worker
	var err error
	switch at.At {
	case atGuest:
		w, err = newLab(at.Lab, at.Guest).start(ctx)
	case atLab:
		if err = lab.Enter(); err == nil {
			ctx, stop := UntilEnded(ctx)
			w = newWorker(ctx, &Inside{Venue: newLab(at.Lab, at.Guest), Files: lab.Inherited(at.Inherit)}, stop)
		}
	default:
		return notHandedOver("no place %q", at.At)
	}
	answers := json.NewEncoder(to)
	if err != nil { // whatever the first task is
		return answers.Encode(newAnswer(nil, err))
	}
	return errors.Join(w.serve(orders, answers, verbs), w.end())
}

// serve carries out one task after the other.
func (w *Worker) serve(orders *json.Decoder, answers *json.Encoder, verbs []AnyVerb) error {
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return notHandedOver("%w", err)
		}
		i := slices.IndexFunc(verbs, func(v AnyVerb) bool { return v.name() == o.Verb })
		if i < 0 {
			return notHandedOver("no task %q", o.Verb)
		}
		a, err := w.carryOut(verbs[i], &o)
		if err != nil {
			a = newAnswer(nil, err)
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

func notHandedOver(format string, args ...any) error {
	return exit.Usage("%s: %w; cnibench itself starts this command", InsideCommand, fmt.Errorf(format, args...))
}
