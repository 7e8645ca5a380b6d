package agent

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/host"
)

// `EXE agent exec` runs one command at an endpoint, such as a pod, to which there is only
// a stream. Both directions of the stream carry frames. When the stream ends, the command
// is killed. The command's network traffic does not pass through the stream. Next:
// exec_serve.go for the side in the pod, exec_start.go for the side that orders.

// The kinds of frames to the command's side; the first is an order.
const (
	frameOrder  = 'c' // an execOrder as JSON
	frameInput  = 'i' // standard input
	frameEnd    = 'z' // the end of standard input
	frameSignal = 's' // the name of a signal: "SIGTERM"
	frameAlive  = 'a' // empty: the other side still runs
)

// The kinds of frames from the command's side. The first is started or refused, the last
// is exit.
const (
	frameStarted = 'S'
	frameRefused = 'R' // an execRefusal as JSON
	frameOutput  = 'o' // standard output
	frameError   = 'e' // standard error
	frameExit    = 'x' // an execExit as JSON
)

// execOrder says which command to run.
type execOrder struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	// Stdin, Stdout and Stderr say whether frames carry the stream. Else it is the null
	// device, except that execExit.Stderr holds the last part of standard error.
	Stdin  bool `json:"stdin,omitempty"`
	Stdout bool `json:"stdout,omitempty"`
	Stderr bool `json:"stderr,omitempty"`
}

// execRefusal says why nothing was started.
type execRefusal struct {
	Program string `json:"program,omitempty"` // the missing program
	Remedy  string `json:"remedy,omitempty"`
	Text    string `json:"text,omitempty"`
}

func (r *execRefusal) err() error {
	if r.Program != "" {
		return &host.ProgramError{Program: r.Program, Remedy: r.Remedy}
	}
	return errors.New(r.Text)
}

// execExit says how the command ended.
type execExit struct {
	Code   int    `json:"code"`             // 128 + signal, where a signal ended it
	Stderr string `json:"stderr,omitempty"` // the last part, if frames did not carry it
	Text   string `json:"text,omitempty"`   // an error that is not the command's
}

// Have is the output of `EXE agent have PROGRAM…` in an image.
type Have struct {
	Version string   `json:"version"`
	SHA256  string   `json:"sha256"`  // of this program, hexadecimal
	Missing []string `json:"missing"` // the programs that the image lacks
}

// sendJSON writes one frame that carries v.
func sendJSON(w *frame.Writer, kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > frame.Max {
		return fmt.Errorf("a command line of %d bytes is too long: at most %d can be sent", len(b), frame.Max)
	}
	return w.Send(kind, b)
}
