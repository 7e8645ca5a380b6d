package bench

import (
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
	out, err := host.Output(ctx, network.Nodes()[0], host.Command{Argv: []string{r.Exe, "fingerprint", "--uplink", network.Uplink()}, OffMeasuredCPUs: true})
	if err != nil {
		return nil, err
	}
	var env result.Environment
	if err := json.Unmarshal(out, &env); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	return env, nil
}
