package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// Fingerprint returns the environment as a node of the arena sees it. A node in
// namespaces has settings of its own, which differ from the runner's.
func (r *Runner) Fingerprint(ctx context.Context, entry result.Entry) (result.Environment, error) {
	c, err := r.Catalogue(entry.ID)
	if err != nil {
		return nil, err
	}
	network, err := r.Arena.Up(ctx, c, entry.Underlay)
	if err != nil {
		return nil, err
	}
	defer func() { r.noteLeft("fingerprint: "+entryName(entry), network.Down(context.WithoutCancel(ctx))) }()
	var out bytes.Buffer
	p, err := network.Nodes()[0].Start(ctx, host.Command{Argv: []string{r.Exe, "fingerprint", "--uplink", network.Uplink()}, Stdout: &out, Aside: true})
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
