package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/host"
)

// run runs a client program to its end and returns what it printed and how
// long it took. It stays in this process's group, so that ending the group
// ends it too.
func run(ctx context.Context, argv []string) (stdout, stderr []byte, took time.Duration, err error) {
	var out, errs bytes.Buffer
	start := time.Now()
	p, err := host.Foreground(ctx, host.Command{Argv: argv, Stdout: &out, Stderr: &errs})
	if err != nil {
		return nil, nil, 0, err
	}
	err = p.Wait()
	took = time.Since(start)
	if ctx.Err() != nil {
		return nil, nil, took, ctx.Err()
	}
	var exit *host.ExitError
	if errors.As(err, &exit) {
		// The error leaves the arguments out: the caller knows them.
		err = fmt.Errorf("%s: exit status %d: %s", argv[0], exit.Code, strings.Join(strings.Fields(errs.String()), " "))
	}
	return out.Bytes(), errs.Bytes(), took, err
}
