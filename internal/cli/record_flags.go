package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/record"
	"github.com/cnibench/cnibench/internal/sysmon"
)

func (o *recordOptions) flags(f *pflag.FlagSet) {
	f.SetInterspersed(false)
	f.SortFlags = false
	f.StringVarP(&o.File, "file", "f", record.DefaultFile, "`FILE` of the recording")
	f.BoolVar(&o.Plain, "plain", false, "write the recording as text instead of compressing it")
	f.StringVar(&o.Summary, "summary", "", "also write the summary to `FILE`, as JSON")
	f.StringVarP(&o.Instance, "instance", "i", "", "label instance (default: the command)")
	f.FuncP("label", "l", "label `NAME=VALUE` of all metrics; may be repeated", func(text string) error {
		name, value, err := record.Label(text)
		if err != nil {
			return err
		}
		if before, twice := o.given[name]; twice && before != value {
			return fmt.Errorf("label %s appears twice, as %q and %q; names are in lower case, with underscores", name, before, value)
		}
		o.Labels[name], o.given[name] = value, value
		return nil
	})
	f.FuncP("delay", "d", "`seconds` to record before and after the command", func(text string) (err error) {
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
		if ms == 0 { // as in statexec, 0 means now
			o.Begin = time.Time{}
		}
		return err
	})
	f.BoolVarP(&o.server, "server", "s", false, "wait for a client; start and end the command together with the client's")
	f.StringVarP(&o.connect, "connect", "c", "", "start and end the command together with that of the server at `HOST[:PORT]`")
	f.StringVar(&o.listen, "listen", "127.0.0.1", "`ADDRESS[:PORT]` where a server listens; 0.0.0.0 or :: for all addresses")
	f.Uint16Var(&o.port, "sync-port", 8080, "port for server and client (-sp)")
	f.BoolVar(&o.Pair.StartOnly, "sync-start-only", false, "start together, but end independently (-sso)")
	f.DurationVar(&o.Pair.Patience, "connect-timeout", 10*time.Second, "how long a client waits for its server to listen")
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` with the secret that both sides share (default: the variable CNIBENCH_TOKEN)")
	f.StringVar(&o.groups, "process-groups", record.DefaultGroups, "groups of processes whose CPU time is recorded, `NAME=REGEXP`,… of the process name or command line; none: no groups")
	f.StringVar(&o.samplers, "samplers", "all", "what to record, `names` with commas: "+strings.Join(samplerNames(), ", "))
	f.DurationVar(&o.Interval, "interval", sysmon.Interval, "time between snapshots")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no summary to standard error")
	f.BoolVarP(&o.version, "version", "v", false, "print the version")
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
		return "", exit.Usage("--%s %q: want HOST or HOST:PORT, with [ ] around an IPv6 address before a port; all addresses of a machine are 0.0.0.0 or ::", flag, text)
	}
	return net.JoinHostPort(host, port), nil
}

// readToken reads the secret and warns if it is none.
func (o *recordOptions) readToken() ([]byte, error) {
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return nil, exit.Usage("--token-file: %w", err)
	}
	if info, err := os.Stat(o.tokenFile); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		o.Log.Warn(fmt.Sprintf("others may read or change the token in %s (%v); chmod 600 it and make a new one", o.tokenFile, info.Mode().Perm()))
	}
	return b, nil
}

const tokenVariable = "CNIBENCH_TOKEN"

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
		return 0, fmt.Errorf("%q is no duration; write seconds, or a duration such as 1.5s", text)
	}
	return d, nil
}
