package loadcmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/interrupt"
	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/unit"
)

func Serve() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve http|tcp|udp|stream",
		Short: "Serve the other side of `cnibench load`",
		Long: strings.TrimSpace(`
Serve the other side of ` + "`cnibench load`" + ` until interrupted. With --stall the
server holds all responses for a known time, to see whether a load generator notices.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newServeHTTPCmd(), newServeBytesCmd(serve.TCP), newServeBytesCmd(serve.UDP), newServeStreamCmd())
	return c
}

// serveOptions are the flags of all servers.
type serveOptions struct {
	cfg               serve.Config
	request, response string
	json              bool
}

func newServeHTTPCmd() *cobra.Command {
	o := serveOptions{cfg: serve.Config{Protocol: serve.HTTP}}
	c := &cobra.Command{
		Use:   "http",
		Short: "Answer every HTTP/1.1 request with the same bytes",
		Long: strings.TrimSpace(fmt.Sprintf(`
Answer every HTTP/1.1 request with the same bytes, %d of them header, until
interrupted. A web server that people run, such as nginx, is the better other
side of a comparison; this one can stall on purpose.`, serve.HeaderBytes)),
		Example: "  cnibench serve http --listen 10.0.0.2:80 --stall 200ms --every 2s",
		Args:    cobra.NoArgs,
		RunE:    o.run,
	}
	o.flags(c, "127.0.0.1:8080")
	c.Flags().StringVar(&o.response, "size", "350B", "whole response, header included")
	return c
}

// newServeBytesCmd is `serve tcp` or `serve udp`.
func newServeBytesCmd(p serve.Protocol) *cobra.Command {
	o := serveOptions{cfg: serve.Config{Protocol: p}}
	c := &cobra.Command{
		Use:   string(p),
		Short: "Answer every request of --request bytes with --response bytes",
		Args:  cobra.NoArgs,
		RunE:  o.run,
	}
	maximum := unit.Bytes(serve.MaxSize)
	if p == serve.TCP {
		c.Long = strings.TrimSpace(`
Answer with --response bytes after every --request bytes of a connection, for
` + "`cnibench load tcp-rr` and `cnibench load tcp-crr`" + ` alike, until interrupted.`)
		c.Example = "  cnibench serve tcp --listen 10.0.0.2:7000 --request 100 --response 4KiB"
	} else {
		maximum = serve.MaxDatagram
		c.Long = strings.TrimSpace(fmt.Sprintf(`
Answer every datagram of --request bytes with one of --response bytes, for
`+"`cnibench load udp-rr`"+`, until interrupted. The response begins with the
request's first %d bytes as far as both are that long. Datagrams of another
size are not answered.`, serve.EchoedBytes))
		c.Example = "  cnibench serve udp --listen 10.0.0.2:7000 --request 64 --response 64"
	}
	o.flags(c, "127.0.0.1:7000")
	c.Flags().StringVar(&o.request, "request", "1B", fmt.Sprintf("size of a request, 1 to %d bytes", int(maximum)))
	c.Flags().StringVar(&o.response, "response", "1B", fmt.Sprintf("size of a response, 1 to %d bytes", int(maximum)))
	return c
}

func (o *serveOptions) flags(c *cobra.Command, listen string) {
	f := c.Flags()
	f.StringVar(&o.cfg.Listen, "listen", listen, "address and port; port 0 takes a free one")
	f.IntVar(&o.cfg.Threads, "threads", 1, "serving threads; each can hold as many connections as the limit on open files allows")
	f.DurationVar(&o.cfg.Stall, "stall", 0, "hold all responses for this `time`, once every --every (default: never)")
	f.DurationVar(&o.cfg.Every, "every", 2*time.Second, "with --stall: `time` from the begin of one stall to the next")
	f.BoolVar(&o.json, "json", false, "at the end print what was served, with stalls, as one JSON object")
}

// newServeStreamCmd is `serve stream`.
func newServeStreamCmd() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "stream",
		Short: "Receive and count what load tcp-stream and udp-stream send",
		Long: strings.TrimSpace(`
Receive and count what ` + "`cnibench load tcp-stream` and `cnibench load udp-stream`" + `
send, on a TCP and a UDP port of the same number, until interrupted.`),
		Example: "  cnibench serve stream --listen 10.0.0.2:5201",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := interrupt.Context(c)
			defer stop()
			s, err := stream.NewSink(listen)
			if err != nil {
				return withExitCode(err, stream.ErrConfig)
			}
			c.PrintErrf("receiving on %v\n", s.Addr())
			return s.Serve(ctx)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:5201", "address and port, of TCP and UDP; port 0 takes a free one")
	return c
}

// served is what `cnibench serve --json` prints when it ends.
type served struct {
	Schema   string           `json:"schema"`
	Requests int64            `json:"requests"`
	Ignored  int64            `json:"ignored"` // datagrams of another size
	Stalls   []serve.Interval `json:"stalls"`
}

func (o *serveOptions) run(c *cobra.Command, _ []string) error {
	sizes := []struct {
		name, text string
		bytes      *int
	}{{"--request", o.request, &o.cfg.Request}, {"--response", o.response, &o.cfg.Response}}
	if o.cfg.Protocol == serve.HTTP {
		sizes = sizes[1:]
		sizes[0].name = "--size"
	}
	for _, size := range sizes {
		bytes, err := unit.ParseBytes(size.text)
		if err != nil {
			return exit.Usage("%s: %w", size.name, err)
		}
		*size.bytes = int(min(bytes, 1<<40)) // what is too much is for serve to say
	}
	ctx, stop := interrupt.Context(c)
	defer stop()
	s, err := serve.New(o.cfg)
	if err != nil {
		return withExitCode(err, serve.ErrConfig)
	}
	if o.cfg.Protocol == serve.HTTP {
		c.PrintErrf("serving %d bytes on http://%v/\n", o.cfg.Response, s.Addr())
	} else {
		c.PrintErrf("serving %d bytes for %d on %s %v\n", o.cfg.Response, o.cfg.Request, o.cfg.Protocol, s.Addr())
	}
	if err := s.Serve(ctx); err != nil {
		return err
	}
	if n := s.Ignored(); n > 0 {
		c.PrintErrf("%d datagrams were not answered: they did not have the %d bytes of --request\n", n, o.cfg.Request)
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(served{"cnibench/serve/1", s.Requests(), s.Ignored(), s.Stalls()})
	}
	return nil
}
