// Package slicing is how one program has another one load a path in slices. The
// loading program (Serve) reads orders from its standard input and answers on its
// standard output; Client is the other side. Both speak lines of JSON:
//
//	<- {"event":"ready"}                        the connections are open
//	-> {"lead":0.05,"length":0.2}               seconds that do not count, and that do
//	<- {"event":"begin"}                        the lead is over
//	<- {"event":"end"}                          the length is over
//	<- {"event":"slice","report":{…}}           what the slice measured
//
// Any number of slices follow, until the input ends and with it the program. The
// reports are those of the load (load.Report, stream.Report). After an error the
// program ends, too; standard error and the exit code say why. The
// package knows no load and no workload. Next: serve.go.
package slicing

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// order asks for a slice.
type order struct {
	Lead   float64 `json:"lead"`   // s
	Length float64 `json:"length"` // s
}

// answer is a line of the loading program.
type answer struct {
	Event  event           `json:"event"`
	Report json.RawMessage `json:"report,omitempty"` // of a slice
}

// event says what an answer is.
type event string

const (
	ready event = "ready"
	begin event = "begin"
	end   event = "end"
	slice event = "slice"
)

// longestLine is the longest answer in bytes: a report with full histograms.
const longestLine = 16 << 20

// Client has a program load in slices. Its methods return when the program has
// answered, or when its answers end.
type Client struct {
	orders *json.Encoder
	lines  *bufio.Scanner
}

// NewClient talks with a program through its input and its output.
func NewClient(orders io.Writer, answers io.Reader) *Client {
	c := &Client{json.NewEncoder(orders), bufio.NewScanner(answers)}
	c.lines.Buffer(nil, longestLine)
	return c
}

// ErrEnded is in the chain of the error when the program's answers ended too early.
var ErrEnded = errors.New("the output of the load ended without a result")

// next reads the next answer, which must be that.
func (c *Client) next(wanted event) (answer, error) {
	var a answer
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return a, fmt.Errorf("output of the load: %w", err)
		}
		return a, ErrEnded
	}
	if err := json.Unmarshal(c.lines.Bytes(), &a); err != nil {
		return a, fmt.Errorf("output of the load: %w", err)
	}
	if a.Event != wanted {
		return a, fmt.Errorf("output of the load: unexpected line %.80q", c.lines.Text())
	}
	return a, nil
}

// Ready waits until the connections are open.
func (c *Client) Ready() error {
	_, err := c.next(ready)
	return err
}

// Slice orders a slice, calls begins and ends, if any, at its borders and returns its
// report. A begin without an end gets its end before an error is returned.
func (c *Client) Slice(lead, length time.Duration, begins, ends func()) (report json.RawMessage, err error) {
	if err := c.orders.Encode(order{lead.Seconds(), length.Seconds()}); err != nil {
		return nil, fmt.Errorf("order a slice: %w", errors.Join(ErrEnded, err))
	}
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	if _, err := c.next(begin); err != nil {
		return nil, err
	}
	call(begins)
	_, err = c.next(end)
	call(ends)
	if err != nil {
		return nil, err
	}
	a, err := c.next(slice)
	return a.Report, err
}
