package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/config"
)

// The groups of commands in the help of the root.
const (
	groupWork   = "work"
	groupState  = "state"
	groupAccess = "access"
	groupLocal  = "local"
)

// group sorts the commands of the root into groups. Those that it does not name work on this machine.
func group(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Workflows, runs and events:"},
		&cobra.Group{ID: groupState, Title: "The platform:"},
		&cobra.Group{ID: groupAccess, Title: "Projects and access:"},
		&cobra.Group{ID: groupLocal, Title: "On this machine:"},
	)
	of := map[string]string{
		"find": groupWork, "workflow": groupWork, "function": groupWork, "run": groupWork, "batch": groupWork, "event": groupWork, "problem": groupWork,
		"view":       groupWork,
		"dispatcher": groupState, "worker": groupState, "system": groupState,
		"project": groupAccess, "quota": groupAccess, "webhook": groupAccess, "token": groupAccess, "audit": groupAccess,
		"whoami": groupAccess,
	}
	for _, command := range root.Commands() {
		command.GroupID = groupLocal
		if id, known := of[command.Name()]; known {
			command.GroupID = id
		}
	}
	root.SetHelpCommandGroupID(groupLocal)
}

// addAliases gives the verbs the short names that other tools have for them.
func addAliases(cmd *cobra.Command) {
	for _, verb := range cmd.Commands() {
		switch verb.Name() {
		case "list":
			verb.Aliases = append(verb.Aliases, "ls")
		case "show":
			verb.Aliases = append(verb.Aliases, "get", "describe")
		case "delete":
			verb.Aliases = append(verb.Aliases, "rm")
		case "acknowledge":
			verb.Aliases = append(verb.Aliases, "ack")
		case "cancel":
			verb.Aliases = append(verb.Aliases, "stop")
		case "replay":
			verb.Aliases = append(verb.Aliases, "retry")
		}
		if cmd.Name() == "run" && verb.Name() == "show" {
			verb.Aliases = append(verb.Aliases, "status")
		}
		addAliases(verb)
	}
}

// usage prints how a command is called. Flags that all commands share, and those of the configuration, are lists of
// their own.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	text.WriteString("Usage:")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n  %s [command]", cmd.CommandPath())
	}
	text.WriteString("\n")
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&text, "\nAliases:\n  %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n",
			strings.ReplaceAll(cmd.Example, " "+program+" ", " "+cmd.Root().CommandPath()+" "))
	}
	writeSubcommands(&text, cmd)
	own, shared, keys := flagsOf(cmd)
	for _, list := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags:", own}, {"Global flags:", shared}, {"Flags of the configuration:", keys}} {
		if list.flags.HasAvailableFlags() {
			fmt.Fprintf(&text, "\n%s\n%s", list.title, list.flags.FlagUsages())
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\nUse \"%s [command] --help\" for more about a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), text.String())
	return err
}

func writeSubcommands(text *strings.Builder, cmd *cobra.Command) {
	line := func(c *cobra.Command) { fmt.Fprintf(text, "  %s %s\n", pad(c.Name(), cmd), c.Short) }
	groups := cmd.Groups()
	if len(groups) == 0 && cmd.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, g := range groups {
		fmt.Fprintf(text, "\n%s\n", g.Title)
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				line(c)
			}
		}
	}
}

// pad fills the name of a subcommand up to the longest one.
func pad(name string, cmd *cobra.Command) string {
	width := 0
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			width = max(width, len(c.Name()))
		}
	}
	return name + strings.Repeat(" ", max(0, width-len(name)+1))
}

// flagsOf splits the flags of a command.
func flagsOf(cmd *cobra.Command) (own, shared, keys *pflag.FlagSet) {
	own, shared, keys = newFlagSet(), newFlagSet(), newFlagSet()
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		_, isKey := flag.Annotations[config.KeyAnnotation]
		switch {
		case isKey:
			keys.AddFlag(flag)
		case invocation.IsGlobal(flag) || flag.Name == "help":
			shared.AddFlag(flag)
		default:
			own.AddFlag(flag)
		}
	})
	return own, shared, keys
}

func newFlagSet() *pflag.FlagSet { return pflag.NewFlagSet("", pflag.ContinueOnError) }
