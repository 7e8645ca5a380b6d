// Package transfer is the side of a file transfer that runs inside an
// endpoint: it repeats curl, scp or an HTTP/3 client of its own until a window
// is full, times each transfer, and serves HTTP/3. It configures no other
// server and judges nothing: package workload configures the servers, package verdict
// judges. Next: repeat.go, then curl.go.
package transfer

import (
	"context"
	"slices"
)

// Transfer is one whole file that has arrived.
type Transfer struct {
	// Seconds are from the start of the transfer to its end, by the client's
	// own clock: connecting, handshakes and login are part of it. The exact start and
	// end depend on the client; see Curl, HTTP3 and Scp.
	Seconds float64 `json:"seconds"`
	// FirstByte are the seconds from the same start to the first byte of the
	// answer; 0 is unknown.
	FirstByte float64 `json:"first_byte_seconds,omitempty"`
}

// Client fetches a file.
type Client interface {
	// Fetch fetches the whole file once, over connections of its own, and writes it
	// to a path; with "" it keeps none of it. Errors: the transfer ended before the
	// last byte, or brought another number of bytes than the file has.
	Fetch(ctx context.Context, to string) (Transfer, error)
}

// ReportSchema names Report's form.
const ReportSchema = "cnibench/transfer/1"

// Report is what `cnibench transfer` prints at its end, as one line of JSON.
type Report struct {
	Schema    string     `json:"schema"`
	FileBytes int64      `json:"file_bytes"`
	Transfers []Transfer `json:"transfers"`      // of the window, one after another
	Window    float64    `json:"window_seconds"` // from the first's start to the last's end, the gaps between them included
	// FirstByte is the time to the first byte, s, of a client that can't measure it in
	// each transfer; see Scp.
	FirstByte float64 `json:"first_byte_seconds,omitempty"`
	// UDP is set if this program itself opened the socket, as HTTP3 does.
	UDP *UDP `json:"udp,omitempty"`
}

// UDP is what the kernel granted a QUIC socket.
type UDP struct {
	// Buffer is the size in bytes that was granted, of the client's receive
	// buffer (SO_RCVBUF) or the server's send buffer (SO_SNDBUF); Wanted is
	// what quic-go asks for.
	Buffer int `json:"buffer_bytes"`
	Wanted int `json:"wanted_bytes"`
}

// Small says whether the kernel granted less than was asked for.
func (u *UDP) Small() bool { return u != nil && u.Buffer < u.Wanted }

// Event is a line before the report: "begin" or "end", printed when the window begins
// or ends.
type Event struct {
	Event string `json:"event"`
}

// Goodput returns the bits of all transfers divided by their seconds, bit/s: what a user
// of the client sees. The gaps between transfers are left out.
func (r *Report) Goodput() float64 {
	return 8 * float64(r.FileBytes) * float64(len(r.Transfers)) / r.busyTime()
}

// Gaps returns the share of the window between transfers, 0 to 1: the time in which the
// next client starts.
func (r *Report) Gaps() float64 { return max(0, 1-r.busyTime()/r.Window) }

func (r *Report) busyTime() float64 {
	var sum float64
	for _, t := range r.Transfers {
		sum += t.Seconds
	}
	return sum
}

// TimeToFirstByte returns the median over the transfers, s; 0 is unknown.
func (r *Report) TimeToFirstByte() float64 {
	if r.FirstByte > 0 {
		return r.FirstByte
	}
	var times []float64
	for _, t := range r.Transfers {
		if t.FirstByte > 0 {
			times = append(times, t.FirstByte)
		}
	}
	return median(times)
}

// median returns the middle value, or the mean of the two middle ones; 0 for no values.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}
