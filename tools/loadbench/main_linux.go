// Program loadbench holds the load engine against packet timestamps, against
// a server that stalls for known times and against other load generators, and
// prints whether it reaches its goals. scripts/bench-load builds and starts
// it; docs/dev/measurement.md explains the method. It measures through the command
// line, as users do. Next: parts_linux.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	cnibench := flag.String("cnibench", "bin/cnibench", "the program to measure")
	duration := flag.Duration("duration", 5*time.Second, "of each load")
	rounds := flag.Int("rounds", 5, "of the closed loops")
	parts := flag.String("parts", "truth,highest,lag,stalls,streams", "which parts to run; lag needs highest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx, *cnibench, *duration, *rounds, strings.Split(*parts, ","))
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-load: %v\n", err)
		os.Exit(1)
	}
	if missed > 0 {
		os.Exit(4) // measured, but a goal is missed
	}
}

func run(ctx context.Context, cnibench string, d time.Duration, rounds int, parts []string) (missed int, err error) {
	dir, err := os.MkdirTemp("", "bench-load-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	b, err := newBed(ctx, cnibench, dir)
	if err != nil {
		return 0, err
	}
	defer b.close()
	// What this program starts ends with it, also when a part fails.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	out := &page{w: os.Stdout}
	out.text(fmt.Sprintf("Kernel %s, %d CPUs; the client on CPU %d, the server on CPU %d, a veth between two namespaces, responses of %d bytes; %s.",
		kernel(), runtime.NumCPU(), b.client.cpu, b.server.cpu, responseBytes, time.Now().UTC().Format("2006-01-02 15:04 UTC")))
	var best float64
	for _, part := range parts {
		switch part {
		case "truth":
			err = b.truth(ctx, out, d)
		case "highest":
			best, err = b.highest(ctx, out, d, rounds)
		case "lag":
			if best == 0 {
				return 0, fmt.Errorf("part lag needs part highest before it")
			}
			err = b.lag(ctx, out, best, d)
		case "stalls":
			err = b.stalls(ctx, out, max(4*d, 5*stallEvery))
		case "streams":
			err = b.streams(ctx, out, d)
		default:
			return 0, fmt.Errorf("part %q; there are truth, highest, lag, stalls and streams", part)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", part, err)
		}
	}
	out.summary()
	return out.missed, nil
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
