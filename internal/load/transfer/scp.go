package transfer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scp is the client over SSH, in the SFTP mode of scp. scp prints no times, so the
// seconds of a transfer are those of the whole program: start, key exchange,
// authentication, the file, end. Fetch measures no first byte; FirstByte does.
type Scp struct {
	Args      []string // options
	From      string   // user@host:path
	FileBytes int64
}

// Fetch implements Client.
func (s Scp) Fetch(ctx context.Context, to string) (Transfer, error) {
	if to == "" {
		to = "/dev/null"
	}
	t, received, err := s.copy(ctx, s.From, to)
	if err != nil {
		return Transfer{}, err
	}
	// /dev/null counts no bytes, so the size is checked by the bytes that ssh received.
	if received < s.FileBytes || received > s.FileBytes+s.FileBytes/16+1<<20 {
		return Transfer{}, fmt.Errorf("ssh received %d bytes for a file of %d", received, s.FileBytes)
	}
	return t, nil
}

// scpTries is how often FirstByte fetches its file at least, unless that takes longer
// than scpPatience.
const (
	scpTries    = 3
	scpPatience = 2 * time.Second
)

// FirstByte fetches the file from, which has one byte, until warmup has passed
// and returns the median time that scp takes for it, the program's start and
// end included, s: neither scp nor ssh says when the first byte of a file
// arrived. It warms the path up as well as whole files do.
func (s Scp) FirstByte(ctx context.Context, from string, warmup time.Duration) (float64, error) {
	var times []float64
	for start := time.Now(); len(times) == 0 || len(times) < scpTries && time.Since(start) < scpPatience || time.Since(start) < warmup; {
		t, _, err := s.copy(ctx, from, "/dev/null")
		if err != nil {
			return 0, fmt.Errorf("a transfer of one byte: %w", err)
		}
		times = append(times, t.Seconds)
	}
	return median(times), nil
}

func (s Scp) copy(ctx context.Context, from, to string) (t Transfer, received int64, err error) {
	// -s: SFTP, whatever the version's default. VERBOSE: ssh says at its end
	// how much it sent and received.
	argv := slices.Concat([]string{"scp", "-s", "-o", "LogLevel=VERBOSE"}, s.Args, []string{from, to})
	_, stderr, took, err := run(ctx, argv)
	if err != nil {
		return t, 0, err
	}
	received, err = parseTransferred(bytes.NewReader(stderr))
	return Transfer{Seconds: took.Seconds()}, received, err
}

// parseTransferred finds "Transferred: sent 5032, received 268554704 bytes,
// in 0.9 seconds" in what ssh says with LogLevel VERBOSE.
func parseTransferred(r io.Reader) (received int64, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for lines.Scan() {
		rest, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "Transferred: sent ")
		if !found {
			continue
		}
		_, rest, _ = strings.Cut(rest, ", received ")
		number, _, ok := strings.Cut(rest, " bytes, ")
		received, err = strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || received < 0 {
			return 0, fmt.Errorf("ssh said %.120q, without the bytes that it received", lines.Text())
		}
		return received, nil
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("ssh did not say how many bytes it received")
}
