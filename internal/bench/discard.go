package bench

import "io"

// discard takes raw files that nobody will read.
type discard struct{}

// Create implements workload.Raw.
func (discard) Create(string) (io.WriteCloser, error) { return nothing{}, nil }

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }
