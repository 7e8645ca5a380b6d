package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// Fingerprint is the environment as a node of the arena sees it: what
// namespaces hold of their own is the node's, not the runner's.
func (r *Runner) Fingerprint(ctx context.Context, entry result.Entry) (result.Environment, error) {
	c, err := r.Catalogue(entry.ID)
	if err != nil {
		return nil, err
	}
	net, err := r.Arena.Up(ctx, c, entry.Underlay)
	if err != nil {
		return nil, err
	}
	defer func() { r.noteLeft("fingerprint: "+entryName(entry), net.Down(context.WithoutCancel(ctx))) }()
	var out bytes.Buffer
	p, err := net.Nodes()[0].Start(ctx, host.Command{Argv: []string{r.Exe, "fingerprint", "--uplink", net.Uplink()}, Stdout: &out, Aside: true})
	if err != nil {
		return nil, err
	}
	if err := p.Wait(); err != nil {
		return nil, err
	}
	var env result.Environment
	if err := json.Unmarshal(out.Bytes(), &env); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	return env, nil
}
