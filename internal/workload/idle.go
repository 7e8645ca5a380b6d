package workload

import (
	"context"
	"fmt"
	"time"
)

// Idle sends nothing: the recorder then shows what the network costs without traffic.
type Idle struct{}

// Info implements Workload. Its figures come from the recorder alone.
func (Idle) Info() Info {
	return Info{Name: "idle", Summary: "no load: CPU and memory of the network itself"}
}

// Drive implements Workload.
func (Idle) Drive(ctx context.Context, s *Session) (Outcome, error) {
	measure(ctx, s, time.Now(), s.Warmup, s.Duration, s.Duration)
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("idle: %w", err)
	}
	return Outcome{}, nil
}
