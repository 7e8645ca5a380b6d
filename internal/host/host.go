// Package host is the seam to a machine: commands that run somewhere, the
// programs a workload needs, and files below a root. Tests replace it with
// fakes. It starts nothing by itself in a namespace; the arenas do. Next:
// exec.go for the local implementation, packages.txt for what brings a program.
package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/text"
)

// Command is a program to run at some endpoint.
type Command struct {
	Argv   []string  // program and arguments; the program is looked up on the endpoint's PATH
	Env    []string  // KEY=VALUE, added to the endpoint's own environment
	Stdin  io.Reader // nil reads from the null device
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil keeps the last 4 KiB for error messages
	// OffMeasuredCPUs keeps the process off the measured CPUs: recorders and helpers
	// run aside, servers and clients of a workload do not.
	OffMeasuredCPUs bool
}

// String returns the command as a user would paste it into a shell.
func (c Command) String() string {
	quoted := make([]string, len(c.Argv))
	for i, arg := range c.Argv {
		quoted[i] = text.ShellWord(arg)
	}
	return strings.Join(quoted, " ")
}

// Runner is a place where commands run: this machine, a node, a pod.
type Runner interface {
	// Start starts the command and returns at once. The process is killed
	// when ctx ends. Errors: *ProgramError if the program is missing.
	Start(ctx context.Context, c Command) (Process, error)
}

// Output runs the command to its end and returns its standard output, also with an error.
func Output(ctx context.Context, r Runner, c Command) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	p, err := r.Start(ctx, c)
	if err == nil {
		err = p.Wait()
	}
	return out.Bytes(), err
}

// Process is a started command.
type Process interface {
	// Wait waits for the end; a non-zero exit is an *ExitError.
	Wait() error
	// Signal sends the process a signal. It is no error if the process has ended.
	Signal(os.Signal) error
}

// ProgramError says that a program is missing and what installs it.
type ProgramError struct {
	Program string
	Remedy  string // "" where unknown
}

func (e *ProgramError) Error() string {
	if e.Remedy == "" {
		return fmt.Sprintf("%s: program not found", e.Program)
	}
	return fmt.Sprintf("%s: program not found; %s", e.Program, e.Remedy)
}

// ExitError is a command that ended with a non-zero status or by a signal.
type ExitError struct {
	Command string
	Code    int    // exit code, or 128 + signal number as a shell reports it
	Stderr  string // the last of its standard error
}

func (e *ExitError) Error() string {
	msg := fmt.Sprintf("%s: exit status %d", e.Command, e.Code)
	if s := strings.TrimSpace(e.Stderr); s != "" {
		msg += ": " + s
	}
	return msg
}
