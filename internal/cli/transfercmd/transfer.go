// Package transfercmd has the sides of file transfers at endpoints. Next: transfer.go.
package transfercmd

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/interrupt"
	"github.com/cnibench/cnibench/internal/load/transfer"
)

// Transfer is the side of a file transfer inside an endpoint; the
// workloads http_get, https_get, http3_get, ftp_get and scp_copy start it.
func Transfer() *cobra.Command {
	c := &cobra.Command{
		Use:    "transfer file|curl|scp|http3|serve-http3",
		Short:  "Make, fetch or serve a file at an endpoint",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTransferFileCmd(), newTransferCurlCmd(), newTransferScpCmd(), newTransferHTTP3Cmd(), newServeHTTP3Cmd())
	return c
}

func newTransferFileCmd() *cobra.Command {
	var size int64
	c := &cobra.Command{
		Use: "file PATH", Short: "Make the file that transfers move", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return transfer.Write(args[0], size) },
	}
	c.Flags().Int64Var(&size, "bytes", 0, "size of the file")
	return c
}

// fetchOptions are the flags of all clients.
type fetchOptions struct {
	plan   transfer.Plan
	verify string
}

func (o *fetchOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.Int64Var(&o.plan.FileBytes, "bytes", 0, "size of the file")
	f.DurationVar(&o.plan.Warmup, "warmup", 0, "time at the start whose transfers are not counted")
	f.DurationVar(&o.plan.Duration, "duration", 10*time.Second, "time during which transfers are started")
	f.StringVar(&o.verify, "verify", "", "first fetch the file once to this path and compare every byte")
}

// run fetches until the window is full and prints events and the report.
// before runs after the verification, and may add to the report.
func (o *fetchOptions) run(c *cobra.Command, client transfer.Client, before func(ctx context.Context) (func(*transfer.Report), error)) error {
	ctx, stop := interrupt.Context(c)
	defer stop()
	if o.verify != "" {
		if err := transfer.Verify(ctx, client, o.verify, o.plan.FileBytes); err != nil {
			return err
		}
	}
	complete := func(*transfer.Report) {}
	if before != nil {
		var err error
		if complete, err = before(ctx); err != nil {
			return err
		}
	}
	out := json.NewEncoder(c.OutOrStdout())
	event := func(name string) func() {
		// What can't be written shows at the reader: its window is not marked.
		return func() { _ = out.Encode(transfer.Event{Event: name}) }
	}
	o.plan.Begin, o.plan.End = event("begin"), event("end")
	report, err := transfer.Repeat(ctx, client, o.plan)
	if err != nil {
		return err
	}
	complete(report)
	return out.Encode(report)
}

func newTransferCurlCmd() *cobra.Command {
	var o fetchOptions
	c := &cobra.Command{
		Use: "curl [flags] -- ARGUMENT…", Short: "Fetch a file with curl, again and again", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c, transfer.Curl{Args: args, FileBytes: o.plan.FileBytes}, nil)
		},
	}
	o.flags(c)
	return c
}

func newTransferScpCmd() *cobra.Command {
	var o fetchOptions
	var oneByte string
	c := &cobra.Command{
		Use: "scp [flags] -- ARGUMENT… USER@HOST:PATH", Short: "Fetch a file with scp, again and again", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			last := len(args) - 1
			scp := transfer.Scp{Args: args[:last], From: args[last], FileBytes: o.plan.FileBytes}
			if oneByte == "" {
				return o.run(c, scp, nil)
			}
			return o.run(c, scp, func(ctx context.Context) (func(*transfer.Report), error) {
				first, err := scp.FirstByte(ctx, oneByte, o.plan.Warmup)
				o.plan.Warmup = 0
				return func(r *transfer.Report) { r.FirstByte = first }, err
			})
		},
	}
	o.flags(c)
	c.Flags().StringVar(&oneByte, "one-byte", "", "USER@HOST:PATH of a file of one byte, which is the warm-up and gives the time to the first byte")
	return c
}

func newTransferHTTP3Cmd() *cobra.Command {
	var o fetchOptions
	var ca string
	c := &cobra.Command{
		Use: "http3 [flags] URL", Short: "Fetch a file over HTTP/3, again and again", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := transfer.NewHTTP3(args[0], ca, o.plan.FileBytes)
			if err != nil {
				return err
			}
			return o.run(c, client, func(context.Context) (func(*transfer.Report), error) {
				return func(r *transfer.Report) { r.UDP = client.UDP }, nil
			})
		},
	}
	o.flags(c)
	c.Flags().StringVar(&ca, "cacert", "", "PEM file with the only trusted certificates")
	return c
}

func newServeHTTP3Cmd() *cobra.Command {
	var s transfer.HTTP3Server
	c := &cobra.Command{
		Use: "serve-http3 FILE", Short: "Serve one file over HTTP/3", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interrupt.Context(c)
			defer stop()
			s.File = args[0]
			out := json.NewEncoder(c.OutOrStdout())
			served, err := s.Serve(ctx, func() { _ = out.Encode(transfer.Event{Event: "serving"}) })
			if err != nil {
				return err
			}
			return out.Encode(served)
		},
	}
	c.Flags().StringVar(&s.Listen, "listen", "127.0.0.1:8443", "address and UDP port")
	c.Flags().StringVar(&s.Cert, "cert", "", "PEM file of the certificate")
	c.Flags().StringVar(&s.Key, "key", "", "PEM file of its key")
	return c
}
