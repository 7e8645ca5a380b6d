package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/record"
	"github.com/cnibench/cnibench/internal/sysmon"
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

func (o *recordOptions) flags(f *pflag.FlagSet) {
	f.SetInterspersed(false)
	f.SortFlags = false
	f.StringVarP(&o.File, "file", "f", record.DefaultFile, "the recording")
	f.BoolVar(&o.Plain, "plain", false, "keep it as text instead of compressing it")
	f.StringVar(&o.Summary, "summary", "", "write the summary to this file too, as JSON")
	f.StringVarP(&o.Instance, "instance", "i", "", "label instance (default: the command)")
	f.FuncP("label", "l", "label NAME=VALUE of all metrics; repeat it for more", func(text string) error {
		name, value, err := record.Label(text)
		if err != nil {
			return err
		}
		if before, twice := o.given[name]; twice && before != value {
			return fmt.Errorf("label %s is there twice, as %q and %q; names are in lower case, with underscores", name, before, value)
		}
		o.Labels[name], o.given[name] = value, value
		return nil
	})
	f.FuncP("delay", "d", "seconds to record before and after the command", func(text string) (err error) {
		o.Before, err = seconds(text)
		o.After = o.Before
		return err
	})
	delay := func(d *time.Duration) func(string) error {
		return func(text string) (err error) { *d, err = seconds(text); return err }
	}
	f.Func("delay-before-command", "seconds to record before the command (-dbc)", delay(&o.Before))
	f.Func("delay-after-command", "seconds to record after the command (-dac)", delay(&o.After))
	f.Func("metrics-start-time", "time of the first snapshot, in ms since 1970 (-mst; default: the real one)", func(text string) error {
		ms, err := strconv.ParseInt(text, 10, 64)
		o.Begin = time.UnixMilli(ms)
		if err == nil && (ms < 0 || ms > 1<<43) {
			err = errors.New("not between 1970 and 2248, in milliseconds")
		}
		if ms == 0 { // now, as statexec has it
			o.Begin = time.Time{}
		}
		return err
	})
	f.BoolVarP(&o.server, "server", "s", false, "wait for a client: its start and end are this command's too")
	f.StringVarP(&o.connect, "connect", "c", "", "start and end together with the server at HOST or HOST:PORT")
	f.StringVar(&o.listen, "listen", "127.0.0.1", "address that a server listens on, or ADDRESS:PORT; 0.0.0.0 or :: for all of them")
	f.Uint16Var(&o.port, "sync-port", 8080, "port that server and client meet on (-sp)")
	f.BoolVar(&o.Pair.StartOnly, "sync-start-only", false, "start together, end apart (-sso)")
	f.DurationVar(&o.Pair.Patience, "connect-timeout", 10*time.Second, "how long a client waits for its server to listen")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the secret that both sides share (default: the text in CNIBENCH_TOKEN)")
	f.StringVar(&o.groups, "process-groups", record.DefaultGroups, "processes whose CPU time is recorded together: NAME=REGEXP of the name or command line, several with commas; none turns it off")
	f.StringVar(&o.samplers, "samplers", "all", "what to record, names with commas: "+strings.Join(samplerNames(), ", "))
	f.DurationVar(&o.Interval, "interval", sysmon.Interval, "time between snapshots")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no summary on standard error")
	f.BoolVarP(&o.version, "version", "v", false, "print the version")
}

func (o *recordOptions) run(c *cobra.Command, args []string) error {
	// The recorder lives beside what is measured, and has nothing to do at once.
	runtime.GOMAXPROCS(1)
	f := c.Flags()
	c.DisableFlagParsing = false
	o.given = map[string]string{}
	if err := record.Environment(os.Environ(), f.Set); err != nil {
		return usage("%w", err)
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
		return usage("%w", err)
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
		return usage("--server and --connect exclude each other: one side waits, the other connects")
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

// address is HOST:PORT of what the flag says, whose port may be left to
// --sync-port. Nothing is no host: it would be every address of the machine.
func (o *recordOptions) address(flag, text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, strconv.Itoa(int(o.port))
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			host = text[1 : len(text)-1]
		}
	}
	if host == "" || strings.ContainsAny(host, "[]") || port == "" {
		return "", usage("--%s %q: want HOST or HOST:PORT, with [ ] around an IPv6 address before a port; all addresses of a machine are 0.0.0.0 or ::", flag, text)
	}
	return net.JoinHostPort(host, port), nil
}

// readToken reads the secret and warns if it is none.
func (o *recordOptions) readToken() ([]byte, error) {
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return nil, usage("--token-file: %w", err)
	}
	if info, err := os.Stat(o.tokenFile); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		o.Log.Warn(fmt.Sprintf("others may read or change the token in %s (%v); chmod 600 it and make a new one", o.tokenFile, info.Mode().Perm()))
	}
	return b, nil
}

const tokenVariable = "CNIBENCH_TOKEN"

// choose makes the list of samplers.
func (o *recordOptions) choose() error {
	all := sysmon.All()
	if o.groups != "" && o.groups != "none" {
		groups, err := record.Groups(o.groups)
		if err != nil {
			return usage("--process-groups: %w", err)
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
			return nearest.Unknown("sampler", name, samplerNames())
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

// seconds reads a duration as statexec does, whole seconds, or as Go does.
func seconds(text string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n < 0 || n > 1e6 {
			return 0, errors.New("not between 0 and 1,000,000 seconds")
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want seconds, or a duration such as 1.5s", text)
	}
	return d, nil
}
