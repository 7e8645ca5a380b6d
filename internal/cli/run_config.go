package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/study"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/studies"
)

// configFlag names a file of flags.
const configFlag = "config"

// addConfig lets a command take its flags from a file.
func addConfig(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, configFlag, "", "read flags from the YAML `FILE`, e.g. the line suite: latency; the command line overrides it")
}

// applyConfig sets the flags that the file names and the command line does not.
func applyConfig(c *cobra.Command, file string) error {
	if file == "" {
		return nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return exit.Usage("--%s: %v", configFlag, err)
	}
	var values yaml.MapSlice
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return exit.Usage("--%s: %s: want lines as \"suite: latency\": %v", configFlag, file, err)
	}
	for _, item := range values {
		name := fmt.Sprint(item.Key)
		if err := preset(c, name, item.Value); err != nil {
			return exit.Usage("--%s: %s: %v", configFlag, file, err)
		}
	}
	return nil
}

// preset sets a flag that the command line does not.
func preset(c *cobra.Command, name string, value any) error {
	flag := c.Flags().Lookup(name)
	if flag == nil || flag.Hidden || name == configFlag {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		return text.Unknown("flag", name, known)
	}
	if flag.Changed {
		return nil
	}
	for _, one := range toList(value) {
		if err := c.Flags().Set(name, fmt.Sprint(one)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// applyStudy sets the flags that the study of the request chooses and the command line
// does not.
func applyStudy(c *cobra.Command, f *runFlags) error {
	if f.Study == "" || f.Resume != "" {
		return nil
	}
	all, err := study.Load(studies.FS)
	if err != nil {
		return err
	}
	s, err := study.Find(all, f.Study)
	if err != nil {
		return err
	}
	if c.Flags().Changed("suite") {
		return exit.Usage("--suite: the study %s has a suite of its own; leave --study or --suite out", s.ID)
	}
	chosen, err := s.Flags(f.Scale, f.Kind().Cluster)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if err := preset(c, name, chosen[name]); err != nil {
			return fmt.Errorf("study %s: %w", s.ID, err)
		}
	}
	return nil
}

// toList is the value of a flag, or the values of one that is given several times.
func toList(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}
