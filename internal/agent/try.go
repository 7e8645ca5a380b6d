package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/host"
)

// The operations of a trial: settings that are changed for a while.
const (
	opTry    = "try"
	opUntry  = "untry"
	opSettle = "settle"
)

// Try asks for values to be set until Untry, until the agent ends, or for maxTrial.
type Try struct {
	// Journal is the folder of the journal that holds the old values, so that they come
	// back after a crash, too: `cnibench tune revert`.
	Journal string            `json:"journal"`
	Changes []diagnose.Change `json:"changes"`
	// Machine lets the values be those of the machine's own first namespace.
	Machine bool `json:"machine,omitempty"`
}

func (t *Try) complete() error {
	if t.Journal == "" || len(t.Changes) == 0 {
		return errors.New("a trial needs a folder for its journal, and changes")
	}
	return nil
}

// Try sets values at the endpoint. After an error nothing is changed.
func (c *Client) Try(ctx context.Context, t Try) error {
	_, err := call[none](ctx, c, opTry, t, 0)
	return err
}

// Untry takes back what Try has set. The error names what was not, or says that it was
// taken back before.
func (c *Client) Untry(ctx context.Context) error {
	_, err := call[none](ctx, c, opUntry, none{}, 0)
	return err
}

// Settle asks for what an earlier trial left in the machine's journal to be taken back.
type Settle struct {
	Journal string `json:"journal"`
}

func (s *Settle) complete() error {
	if s.Journal == "" {
		return errors.New("the folder of a journal is missing")
	}
	return nil
}

// Settle takes back what a trial left whose holder was killed, and returns how many values
// that were. What the user has applied stays.
func (c *Client) Settle(ctx context.Context, s Settle) (int, error) {
	return call[int](ctx, c, opSettle, s, 0)
}

func (s *server) settle(_ context.Context, order Settle) (int, error) {
	m, err := trialMachine(true)
	if err != nil {
		return 0, err
	}
	return settle(m, order.Journal)
}

// holder is a process of Hold, which has changed something. It outlives the agent.
type holder struct {
	process host.Process
	in, out *os.File // pipes of the system: when the agent is killed, the kernel closes its ends
	answers *json.Decoder
}

// startHolder starts the program with `agent hold` and returns when the changes are made.
func startHolder(program string, t Try) (*holder, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer stdout.Close()
	h := &holder{in: in, out: out, answers: json.NewDecoder(out)}
	if h.process, err = host.StartDetached(host.Command{Argv: []string{program, "agent", "hold"}, Stdin: stdin, Stdout: stdout}); err != nil {
		return nil, errors.Join(fmt.Errorf("start what takes the changes back: %w", err), in.Close(), out.Close())
	}
	_ = stdout.Close() // else its end would not be seen
	err = json.NewEncoder(in).Encode(t)
	if err == nil {
		err = h.answer()
	}
	if err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

// answer reads what the holder has done.
func (h *holder) answer() error {
	var a held
	if err := h.answers.Decode(&a); err != nil {
		return fmt.Errorf("what takes the changes back has ended: %w; see `cnibench tune status` on the node", err)
	}
	return a.err()
}

// takeBack has the old values restored, and waits for that.
func (h *holder) takeBack() error {
	_ = h.in.Close() // this is the order
	return errors.Join(h.answer(), h.end())
}

// end waits for the end of the process.
func (h *holder) end() error {
	_ = h.in.Close()
	defer h.out.Close()
	return h.process.Wait()
}

func (s *server) try(_ context.Context, t Try) (none, error) {
	s.trialMu.Lock()
	defer s.trialMu.Unlock()
	if s.trial != nil {
		return none{}, errors.New("something is tried already; take it back first")
	}
	h, err := startHolder(s.program, t)
	s.trial = h
	return none{}, err
}

func (s *server) untry(context.Context, none) (none, error) {
	return none{}, s.endTrial()
}

// endTrial takes back what is tried, if anything is.
func (s *server) endTrial() error {
	s.trialMu.Lock()
	defer s.trialMu.Unlock()
	h := s.trial
	if h == nil {
		return nil
	}
	s.trial = nil
	return h.takeBack()
}

// ownProgram is this program, whatever its file is called in this mount namespace.
const ownProgram = "/proc/self/exe"

// setName names this process for those who list processes, and for endDescendants.
func setName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }
