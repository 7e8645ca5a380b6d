package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tune"
)

// visited is a contender that is up with settings, and what became of these.
type visited struct {
	arena.Network
	left map[string]string // settings that changed nothing so far, with a reason
	made map[string]bool   // settings that changed something
}

func newVisited(n arena.Network) visited {
	return visited{Network: n, left: map[string]string{}, made: map[string]bool{}}
}

// Notes implements arena.Network.
func (n *visited) Notes() []result.Reason {
	notes := n.Network.Notes()
	for _, name := range slices.Sorted(maps.Keys(n.left)) {
		if !n.made[name] {
			notes = append(notes, result.Reason{Code: tune.NothingSet, Text: fmt.Sprintf("%s changed nothing: %s", name, n.left[name])})
		}
	}
	return notes
}

// note remembers which of the settings did something anywhere, and why others did not.
func (n *visited) note(settings []string, a tune.Answer) {
	for _, name := range settings {
		if reason, left := a.Left[name]; left {
			n.left[name] = cmp.Or(n.left[name], reason) // a node's, not its pods'
		} else {
			n.made[name] = true
		}
	}
}

// ask starts a command at the endpoint that reads the request and writes an answer.
func ask(ctx context.Context, e arena.Endpoint, req tune.Request, argv ...string) (tune.Answer, error) {
	var a tune.Answer
	question, err := json.Marshal(req)
	if err != nil {
		return a, err
	}
	out, err := host.Output(ctx, e, host.Command{Argv: argv, Stdin: bytes.NewReader(question), OffMeasuredCPUs: true})
	if err == nil {
		err = json.NewDecoder(io.LimitReader(bytes.NewReader(out), 1<<20)).Decode(&a)
	}
	if err != nil {
		return a, fmt.Errorf("settings of %s: %w", e.Name(), err)
	}
	return a, nil
}
