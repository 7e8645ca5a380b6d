package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/record"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
)

// recordOptions are the flags of `record`.
type recordOptions struct {
	record.Options
	server           bool
	connect, listen  string
	port             uint16
	tokenFile        string
	groups, samplers string
	quiet, version   bool
	// given are the labels of the environment, then of the flags, which win.
	given map[string]string
}

func newRecordCmd() *cobra.Command {
	o := recordOptions{Options: record.Options{Labels: map[string]string{}}, given: map[string]string{}}
	c := &cobra.Command{
		Use:   "record [flags] [--] COMMAND [ARGUMENT…]",
		Short: "Record the machine's metrics once a second while a command runs",
		Long: strings.TrimSpace(`
Run a command and record what the machine does meanwhile, once a second: CPU
time in every mode, memory, pressure, network, TCP and UDP, conntrack, disks,
interrupts, frequency, energy, and the CPU time of a CNI's daemons. The file is
OpenMetrics text, compressed with zstd; a name that ends in .prom, .om or .txt,
or --plain, keeps it as text. The summary, means over the command's life, goes
to standard error and into the file. Standard output is the command's own.

The exit code is the command's: 127 if it was not found, 126 if it cannot be
run, 128 + n if signal n ended it. If the command succeeded and its recording
could not be written it is 1, for wrong flags 2.

Scripts for statexec work with "cnibench record" in its place, except that
pairs need a token and that a server listens on 127.0.0.1 unless told otherwise.
Variables (flags win): SE_FILE, SE_INSTANCE, SE_METRICS_START_TIME, SE_DELAY,
SE_DELAY_BEFORE_COMMAND, SE_DELAY_AFTER_COMMAND, SE_LABEL_name, SE_CONNECT,
SE_SERVER, SE_SYNC_PORT, SE_SYNC_START_ONLY; short flags as there: -f, -i, -mst,
-d, -dbc, -dac, -l, -c, -s, -sp, -sso.`),
		Example: `  cnibench record -d 3 -l cni=flannel -- iperf3 -c 10.0.0.2
  cnibench record --server --listen 10.0.0.2 --token-file t -f server.om.zst -- iperf3 -s
  cnibench record --connect 10.0.0.2 --token-file t -f client.om.zst -d 5 -- iperf3 -c 10.0.0.2`,
		// statexec's flags such as -dbc are none of pflag's, and the command's
		// own flags are not ours.
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if !strings.HasPrefix(toComplete, "-") {
				return nil, cobra.ShellCompDirectiveDefault
			}
			var flags []string
			c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name+"\t"+f.Usage) })
			return flags, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.flags(c.Flags())
	return c
}

func (o *recordOptions) run(c *cobra.Command, args []string) error {
	// The recorder lives beside what is measured, and has nothing to do at once.
	runtime.GOMAXPROCS(1)
	f := c.Flags()
	c.DisableFlagParsing = false
	o.given = map[string]string{}
	if err := record.Environment(os.Environ(), f.Set); err != nil {
		return exit.Usage("%w", err)
	}
	o.given = map[string]string{}
	args = record.LongFlags(args, func(name string) bool {
		flag := f.Lookup(name)
		return flag != nil && flag.NoOptDefVal == ""
	})
	if err := c.ParseFlags(args); err != nil {
		return c.FlagErrorFunc()(c, err)
	}
	if help, err := f.GetBool("help"); err == nil && help {
		return c.Help()
	}
	if o.version {
		version := newVersionCmd()
		version.SetOut(c.OutOrStdout())
		return version.RunE(version, nil)
	}
	if err := o.fill(c); err != nil {
		return err
	}
	code, summary, err := record.Run(c.Context(), o.Options)
	if summary != nil && !o.quiet {
		fmt.Fprint(c.ErrOrStderr(), "\ncnibench record: ", summary.Text())
	} else if summary != nil && summary.Error != "" {
		err = errors.Join(errors.New(summary.Error), err)
	}
	var wrong *record.OptionError
	switch {
	case errors.As(err, &wrong):
		return exit.Usage("%w", err)
	case err != nil && code == 0:
		code = exit.Failed
	case err == nil && code == 0:
		return nil
	}
	return exit.With(code, err)
}

// fill takes the flags that are not the recorder's own words.
func (o *recordOptions) fill(c *cobra.Command) error {
	o.Command = c.Flags().Args()
	if c.Flags().Changed("plain") && o.Plain && !c.Flags().Changed("file") {
		o.File = strings.TrimSuffix(record.DefaultFile, ".zst")
	}
	o.Stdin, o.Stdout, o.Stderr = os.Stdin, c.OutOrStdout(), c.ErrOrStderr()
	o.Log = console.Logger(c.ErrOrStderr())
	o.Root = sysmon.Machine()
	if err := o.choose(); err != nil {
		return err
	}
	token := []byte(os.Getenv(tokenVariable))
	// The command has no business with the secret.
	if err := record.HideVariable(tokenVariable); err != nil {
		return fmt.Errorf("%w; give the token in a file: --token-file", err)
	}
	connects := c.Flags().Changed("connect")
	var err error
	switch {
	case o.server && connects:
		return exit.Usage("--server and --connect exclude each other: one side waits, the other connects")
	case o.server:
		o.Pair.Role = record.Server
		o.Pair.Address, err = o.address("listen", o.listen)
	case connects:
		o.Pair.Role = record.Client
		o.Pair.Address, err = o.address("connect", o.connect)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if o.tokenFile != "" {
		if token, err = o.readToken(); err != nil {
			return err
		}
	}
	o.Pair.Token = bytes.TrimSpace(token)
	return nil
}

// choose makes the list of samplers.
func (o *recordOptions) choose() error {
	all := sysmon.All()
	if o.groups != "" && o.groups != "none" {
		groups, err := record.Groups(o.groups)
		if err != nil {
			return exit.Usage("--process-groups: %w", err)
		}
		all = append(all, sysmon.ProcessGroups(groups))
	}
	if o.samplers == "all" {
		o.Samplers = all
		return nil
	}
	for name := range strings.SplitSeq(o.samplers, ",") {
		i := slices.IndexFunc(all, func(s sysmon.Sampler) bool { return s.Name == name })
		if i < 0 {
			return text.Unknown("sampler", name, samplerNames())
		}
		o.Samplers = append(o.Samplers, all[i])
	}
	return nil
}

func samplerNames() []string {
	var names []string
	for _, s := range append(sysmon.All(), sysmon.ProcessGroups(nil)) {
		names = append(names, s.Name)
	}
	return names
}
