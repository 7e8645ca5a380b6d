// Package exit holds the program's exit codes and the errors that carry them.
// The command line ends with them, and the process that starts this program in
// a container or a guest reads them. It knows no command. Next: exit.go.
package exit

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

// The exit codes of every command.
const (
	Done        = 0
	Failed      = 1
	WrongUsage  = 2
	Unsupported = 3 // not supported here
	Gate        = 4 // measured, but a gate failed or no sample was valid
)

// Error ends the program with Code. Without Err the program prints nothing.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// With returns an *Error.
func With(code int, err error) error { return &Error{Code: code, Err: err} }

// Usage returns an error of wrong usage.
func Usage(format string, args ...any) error {
	return &Error{Code: WrongUsage, Err: fmt.Errorf(format, args...)}
}

// Code returns the exit code for an error: that of the *Error in its chain, else
// the one of its kind.
func Code(err error) int {
	var coded *Error
	var unknown *text.UnknownError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &coded):
		return coded.Code
	case arena.AsUnsupported(err) != nil:
		return Unsupported
	case errors.As(err, &unknown):
		return WrongUsage
	}
	return Failed
}
