package invocation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// Noun makes a command that only holds verbs. Without a verb it prints its help.
func Noun(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return UnknownVerb(cmd, args[0])
		},
	}
}

// UnknownVerb is the error of a verb the command does not have, with the nearest one it has.
func UnknownVerb(cmd *cobra.Command, verb string) error {
	hint := ""
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(verb); len(near) > 0 {
		hint = ", did you mean \"" + strings.Join(near, "\" or \"") + "\"?"
	}
	return exit.Usagef("%q is no command of %q%s; see \"%s --help\"", verb, cmd.CommandPath(), hint, cmd.CommandPath())
}

// Args checks the number of arguments; usage names them, as in "NAME V1 V2".
func Args(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		right := strings.TrimSpace(cmd.CommandPath() + " " + usage)
		switch {
		case len(args) < least:
			return exit.Usagef("%s: too few arguments; write %s", cmd.CommandPath(), right)
		case most >= 0 && len(args) > most:
			return exit.Usagef("%s: %q is one argument too many; write %s", cmd.CommandPath(), args[most], right)
		}
		return nil
	}
}

// FlagError makes a wrong flag a usage error on one line.
func FlagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cause := invalid.Unwrap().Error()
		kind := kindOf(invalid.GetFlag())
		if kind != "" && (strings.HasPrefix(cause, "strconv.") || strings.HasPrefix(cause, "time: ")) {
			err = fmt.Errorf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
	}
	return exit.Usagef("%s: %w; see \"%s --help\"", cmd.CommandPath(), err, cmd.CommandPath())
}

// kindOf says what a flag's value must be, for the types whose own error is that of a Go function; empty for others.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		return "a whole number in range"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration, as in 90s or 5m"
	}
	return ""
}
