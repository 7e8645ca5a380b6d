package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text"
)

// This file answers mistakes on the command line with what to type instead.

// flagMistake returns the answer to a flag that cannot be parsed.
func flagMistake(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		if name := text.Nearest(unknown.GetSpecifiedName(), flagNames(c)); name != "" {
			return exit.Usage("unknown flag: --%s; did you mean --%s?", unknown.GetSpecifiedName(), name)
		}
	case errors.As(err, &invalid):
		flag, value := invalid.GetFlag(), invalid.GetValue()
		switch flag.Value.Type() {
		case "duration":
			if strings.Trim(value, "0123456789.") == "" && value != "" {
				return exit.Usage("--%s %s: which unit? %ss, %sm or %sh", flag.Name, value, value, value, value)
			}
			return exit.Usage("--%s %s: want a time, such as 500ms, 30s, 5m or 1h30m", flag.Name, value)
		case "int", "uint64", "intSlice":
			return exit.Usage("--%s %s: want a whole number", flag.Name, value)
		}
	}
	return exit.Usage("%v; see `%s --help`", err, c.CommandPath())
}

// flagNames returns the names of the command's visible flags.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}

// wrapArgs turns errors of arguments into wrong usage that shows what to type.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var usage *exit.Error
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return exit.Usage("want: %s; see `%s --help`", strings.TrimSuffix(c.UseLine(), " [flags]"), c.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// runDirs checks that there are from minimum to maximum run directories; maximum 0 is no limit. A file
// of a run directory, such as its report.html, stands for the directory.
func runDirs(minimum, maximum int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		for i, arg := range args {
			if base := filepath.Base(arg); base == "report.html" || base == "run.json" || base == "samples.jsonl" {
				args[i] = filepath.Dir(arg)
			}
		}
		if len(args) >= minimum && (maximum == 0 || len(args) <= maximum) {
			return nil
		}
		command := strings.TrimSuffix(c.UseLine(), " [flags]")
		if len(args) > minimum {
			return exit.Usage("want: %s; %d were given", command, len(args))
		}
		here, _ := filepath.Glob("*/run.json") // the pattern is right
		if len(here) == 0 {
			return exit.Usage("which run? %s; no run directory is in this folder: `cnibench run` makes one", command)
		}
		slices.SortFunc(here, func(a, b string) int { return modTime(b).Compare(modTime(a)) })
		for i := range here {
			here[i] = filepath.Dir(here[i])
		}
		list := strings.Join(text.Shorten(here, 5), ", ")
		return exit.Usage("which run? %s; here are, newest first: %s", command, list)
	}
}

// modTime returns when the file was changed last; the zero time if it cannot be read.
func modTime(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
