package record

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// alias is a flag of statexec. This program has it by the same name. statexec's short
// form may have several letters, which pflag's can't, and an environment variable sets it.
type alias struct {
	flag, short, variable string
	isSwitch              bool // it takes no value; the variable needs only be set
}

var aliases = []alias{
	{"file", "f", "SE_FILE", false},
	{"instance", "i", "SE_INSTANCE", false},
	{"metrics-start-time", "mst", "SE_METRICS_START_TIME", false},
	{"delay", "d", "SE_DELAY", false}, // before the next two, which override one side each
	{"delay-before-command", "dbc", "SE_DELAY_BEFORE_COMMAND", false},
	{"delay-after-command", "dac", "SE_DELAY_AFTER_COMMAND", false},
	{"label", "l", "", false},
	{"connect", "c", "SE_CONNECT", false},
	{"server", "s", "SE_SERVER", true},
	{"sync-port", "sp", "SE_SYNC_PORT", false},
	{"sync-start-only", "sso", "SE_SYNC_START_ONLY", true},
	{"version", "v", "", true},
	{"help", "h", "", true},
}

// labelVariable begins the variables that are labels: SE_LABEL_env=prod.
const labelVariable = "SE_LABEL_"

// LongFlags replaces statexec's short flags by their long names. It stops at the command:
// the first argument that is no flag, or the argument after "--".
func LongFlags(args []string, takesValue func(flag string) bool) []string {
	long := slices.Clone(args)
	for i := 0; i < len(long); i++ {
		arg := long[i]
		if arg == "--" || !strings.HasPrefix(arg, "-") || arg == "-" {
			return long
		}
		if name, ok := strings.CutPrefix(arg, "-"); ok && !strings.HasPrefix(name, "-") {
			name, value, has := strings.Cut(name, "=")
			for _, a := range aliases {
				if name == a.short || name == a.flag { // statexec takes -help
					long[i] = "--" + a.flag
					if has {
						long[i] += "=" + value
					}
				}
			}
		}
		if name, ok := strings.CutPrefix(long[i], "--"); ok && !strings.Contains(name, "=") && takesValue(name) {
			i++
		}
	}
	return long
}

// Environment calls set for the flags that statexec's environment variables set. If two
// variables set the same flag, the later call counts.
func Environment(environ []string, set func(flag, value string) error) error {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
		if label, ok := strings.CutPrefix(name, labelVariable); ok {
			if err := set("label", label+"="+value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, a := range aliases {
		value := values[a.variable]
		if a.variable == "" || value == "" {
			continue
		}
		if a.isSwitch {
			// As in statexec, any text sets the switch server, but only "true" sets
			// sync-start-only.
			if a.flag == "sync-start-only" && value != "true" {
				continue
			}
			value = "true"
		}
		if err := set(a.flag, value); err != nil {
			return fmt.Errorf("%s: %w", a.variable, err)
		}
	}
	return nil
}

var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9]`)

// Label splits NAME=VALUE. It makes the name valid as statexec does: lower case, with an
// underscore instead of every character that is no letter or digit.
func Label(pair string) (name, value string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%q is no label; write NAME=VALUE", pair)
	}
	return strings.ToLower(notInLabel.ReplaceAllString(name, "_")), value, nil
}
