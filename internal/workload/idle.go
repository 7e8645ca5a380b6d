package workload

import (
	"context"
	"time"
)

// Idle does nothing for a while: what the network costs by being there.
type Idle struct{}

// Info implements Workload.
func (Idle) Info() Info {
	return Info{Name: "idle", Summary: "no load: what the network costs by being there"}
}

// Drive implements Workload.
func (Idle) Drive(ctx context.Context, s *Session) (Outcome, error) {
	s.Begin()
	defer s.End()
	select {
	case <-time.After(s.Duration):
		return Outcome{}, nil
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
}
