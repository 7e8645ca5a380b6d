package workload

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// TCPStream sends TCP at a bandwidth, or as much as it carries, with iperf3.
type TCPStream struct{}

// Info implements Workload.
func (TCPStream) Info() Info {
	return Info{
		Name:    "tcp_stream",
		Summary: "bulk TCP from client to server with iperf3; goodput is what the server received",
		Params:  iperf3Streams(),
		Metrics: []string{result.Goodput, result.Retransmits},
	}
}

// Drive implements Workload.
func (TCPStream) Drive(ctx context.Context, s *Session) (Outcome, error) {
	results, out, err := driveIperf3(ctx, s)
	if err != nil {
		return out, fmt.Errorf("tcp_stream: %w", err)
	}
	out.Metrics = map[string]float64{result.Goodput: goodput(results)}
	var retransmits *float64
	for _, r := range results {
		retransmits = plus(retransmits, r.sent.Retransmits)
	}
	if retransmits == nil {
		return out, fmt.Errorf("tcp_stream: iperf3 counted no retransmits: its report lacks them; is it an iperf3 built for Linux?")
	}
	out.Metrics[result.Retransmits] = *retransmits
	return out, nil
}
