package cli

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/nearest"
)

// configFlag names a file of flags.
const configFlag = "config"

// addConfig lets a command take its flags from a file.
func addConfig(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, configFlag, "", "take flags from the YAML `FILE`, with lines as suite: latency; the command line goes first")
}

// applyConfig sets the flags that the file names and the command line does not.
func applyConfig(c *cobra.Command, file string) error {
	if file == "" {
		return nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return usage("--%s: %v", configFlag, err)
	}
	var values yaml.MapSlice
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return usage("--%s: %s: want lines as \"suite: latency\": %v", configFlag, file, err)
	}
	var known []string
	for _, item := range values {
		name := fmt.Sprint(item.Key)
		flag := c.Flags().Lookup(name)
		if flag == nil || flag.Hidden || name == configFlag {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					known = append(known, f.Name)
				}
			})
			return usage("--%s: %s: %v", configFlag, file, nearest.Unknown("flag", name, known))
		}
		if flag.Changed {
			continue
		}
		for _, value := range listed(item.Value) {
			if err := c.Flags().Set(name, fmt.Sprint(value)); err != nil {
				return usage("--%s: %s: %s: %v", configFlag, file, name, err)
			}
		}
	}
	return nil
}

// listed is the value of a flag, or the values of one that is given several times.
func listed(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}
