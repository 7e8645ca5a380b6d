package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/result"
)

// UDPStream sends UDP at a bandwidth, or as fast as it can, with iperf3.
type UDPStream struct{}

// maxDatagram is the most that a UDP datagram over IPv4 carries, bytes.
const maxDatagram = 65507

// Info implements Workload.
func (UDPStream) Info() Info {
	return Info{
		Name:    "udp_stream",
		Summary: "bulk UDP from client to server with iperf3; goodput is what the server received, and loss belongs to it",
		Params: append(iperf3Streams(),
			Param{"length", 0, "bytes in a datagram; 0 is iperf3's own choice, what fits the MTU"}),
		Metrics: []string{result.Goodput, result.Loss, result.Jitter},
	}
}

// Drive implements Workload.
func (UDPStream) Drive(ctx context.Context, s *Session) (Outcome, error) {
	flags := []string{"-u"}
	switch length := s.Params.Int("length"); {
	case length < 0 || length > maxDatagram:
		return Outcome{}, fmt.Errorf("udp_stream: length %d; a datagram carries 1 to %d bytes, and 0 is iperf3's own choice", length, maxDatagram)
	case length > 0:
		flags = append(flags, "-l", strconv.Itoa(length))
	}
	results, out, err := driveIperf3(ctx, s, flags...)
	if err == nil {
		out.Metrics, err = udpMetrics(results)
	}
	if err != nil {
		return out, fmt.Errorf("udp_stream: %w", err)
	}
	if out.Metrics[result.Loss] == 0 && countLost(results) < 0 {
		out.Notes = append(out.Notes, result.Reason{Code: "reordered_datagrams",
			Text: "datagrams that iperf3 had counted as lost before the window arrived within it; loss is given as 0"})
	}
	return out, nil
}

// countLost returns the server's count of lost datagrams. A late datagram lowers the count, so
// that it can be negative over a window.
func countLost(results []iperf3Result) float64 {
	var sum float64
	for _, r := range results {
		if r.received.LostPackets != nil {
			sum += *r.received.LostPackets
		}
	}
	return sum
}

// udpMetrics uses the servers' reports only: the client's summary divides the server's
// losses, with those of the warm-up, by its own datagrams without the warm-up.
func udpMetrics(results []iperf3Result) (map[string]float64, error) {
	var packets, jitter float64
	for _, r := range results {
		got := r.received
		if got.Packets == nil || got.LostPackets == nil || got.JitterMs == nil {
			return nil, errors.New("iperf3's server gave no packets, losses or jitter")
		}
		packets += *got.Packets
		jitter += *got.JitterMs / 1000
	}
	loss := countLost(results)
	if packets <= 0 || loss > packets {
		return nil, fmt.Errorf("iperf3's server counted %.0f of %.0f datagrams as lost, which is impossible", loss, packets)
	}
	return map[string]float64{
		result.Goodput: goodput(results),
		result.Loss:    max(0, loss/packets),
		result.Jitter:  jitter / float64(len(results)), // the mean over streams, as iperf3 has it
	}, nil
}
