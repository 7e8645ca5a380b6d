package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// This file watches an end of a path for IP fragments: with a sniffer, or by the kernel's
// counters where nobody may sniff.

const opFragments = "fragments"

// Watch watches an endpoint for fragments.
type Watch struct {
	agent    *Client
	counters bool // the kernel's, in place of a sniffer
}

// WatchFragments watches the interface for fragments in either direction. Without the
// right to sniff, the counters of the whole network namespace take the sniffer's place.
func (c *Client) WatchFragments(ctx context.Context, device string) (*Watch, error) {
	switch err := c.Sniff(ctx, Sniff{Device: device}); {
	case err == nil:
		return &Watch{agent: c}, nil
	case !errors.Is(err, ErrMayNotSniff):
		return nil, err
	}
	w := &Watch{c, true}
	_, err := w.readCounts(ctx)
	return w, err
}

// Close ends the sniffer.
func (w *Watch) Close(ctx context.Context) error {
	if w.counters {
		return nil
	}
	_, err := w.agent.StopSniffing(ctx)
	return err
}

func (w *Watch) readCounts(ctx context.Context) (Sniffed, error) {
	if !w.counters {
		return w.agent.ReadSniffer(ctx)
	}
	n, err := call[uint64](ctx, w.agent, opFragments, none{}, 0)
	return Sniffed{Fragments: n}, err
}

func readAllCounts(ctx context.Context, ends []*Watch) ([]Sniffed, error) {
	list := make([]Sniffed, len(ends))
	for i, w := range ends {
		var err error
		if list[i], err = w.readCounts(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fragmentFiles are those of proc(5) with the counters of fragments made and received.
var fragmentFiles = map[string][]string{
	"/proc/net/snmp":  {"FragCreates", "ReasmReqds"},
	"/proc/net/snmp6": {"Ip6FragCreates", "Ip6ReasmReqds"},
}

// fragments returns how many IP fragments this network namespace has made and received.
func fragments(context.Context, none) (total uint64, err error) {
	for path, names := range fragmentFiles {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			n, found := counter(string(text), name)
			if !found {
				return 0, fmt.Errorf("%s has no %s", path, name)
			}
			total += n
		}
	}
	return total, nil
}

// counter finds a counter of /proc/net/snmp, which has a line of names above each line of
// values, or of /proc/net/snmp6, which has a name and a value on each line.
func counter(text, name string) (uint64, bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for k, word := range strings.Fields(line) {
			if word != name {
				continue
			}
			values := strings.Fields(line)
			at := k + 1
			if k > 0 { // in a line of names
				if i+1 == len(lines) {
					return 0, false
				}
				values, at = strings.Fields(lines[i+1]), k
			}
			if at >= len(values) {
				return 0, false
			}
			n, err := strconv.ParseUint(values[at], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
