// Package cli is the command line of Signalbox: a client of the API like any other, plus what needs no server.
//
//	os.Exit(cli.Run(ctx, cli.Options{Version: version, Stdin: os.Stdin, …}, os.Args[1:]))
//
// Nouns come first, then verbs. Data goes to standard output, progress and errors to standard error, one line each.
// Package exit has the exit codes, package invocation the settings that all commands share, the packages that end in
// cmd the big nouns. The program adds commands of its own (server, migrate, dev) in
// Options.Commands; their errors are printed and turned into exit codes like all others.
//
// It opens no database and speaks to no Temporal.
package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/internal/cli/batchcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/dispatchercmd"
	"github.com/signalbox-dev/signalbox/internal/cli/eventcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/functioncmd"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/problemcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/systemcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/tokencmd"
	"github.com/signalbox-dev/signalbox/internal/cli/webhookcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/workflowcmd"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Options are the program's surroundings and what its composer adds.
type Options struct {
	// Version of the program; empty: what the build recorded of the module.
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Env     config.Environment
	// Program is the name by which the program was called; empty: signalbox. Hints begin with it.
	Program string
	// ConfigLayers are the configuration's lower layers and their checks, for check-config.
	ConfigLayers []config.Layer
	// CheckServices connects to services that the configuration names, for check-config; nil: none. note receives what
	// could not be checked, and what makes a server slow on this machine.
	CheckServices func(ctx context.Context, cfg *config.Config, note func(format string, args ...any)) config.Violations
	// Bootstrap makes the first token; nil: this program has no store.
	Bootstrap tokencmd.Bootstrap
	// Commands are added to the root.
	Commands []*cobra.Command
	// Interactive is set where a person can be asked although Stdin and Stderr are no terminal.
	Interactive bool
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// New returns the root command.
func New(options Options) *cobra.Command {
	root, _ := build(options)
	return root
}

func build(options Options) (*cobra.Command, *invocation.Invocation) {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := invocation.New(invocation.Streams{
		In: options.Stdin, Out: options.Stdout, Err: options.Stderr, Env: options.Env, Now: options.Now,
		Program:     Called(options.Program),
		Interactive: options.Interactive || invocation.IsTerminal(options.Stdin) && invocation.IsTerminal(options.Stderr),
	})
	root := invocation.Noun("signalbox", "Run declarative workflows on Temporal",
		`Signalbox runs declarative workflows (Open Workflow Specification 1.0) on Temporal.

Commands are a noun, then a verb. They call the server at --address (`+invocation.AddressVariable+`, or the current context;
default `+invocation.DefaultAddress+`) with a --token if it requires one (`+invocation.TokenVariable+`), and work in one --project (`+invocation.ProjectVariable+`; default `+invocation.DefaultProject+`).

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused by the state of an object, 5 unavailable, 6 not signed in, 7 forbidden, 8 conflict with
another request; waiting for a run ends with 10 when it failed, 11 when it was canceled or terminated, 12 when it timed out; 130 interrupted.`)
	root.Version = thisBuild(options.Version).Version
	root.SetVersionTemplate(thisBuild(options.Version).line() + "\n")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: s.Program}
	root.SilenceErrors = true // Run prints them
	root.SilenceUsage = true
	root.SetIn(options.Stdin)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(invocation.FlagError)
	root.AddCommand(
		workflowcmd.New(s), functioncmd.New(s), runcmd.New(s), batchcmd.New(s), problemcmd.New(s), runcmd.NewView(s),
		eventcmd.New(s), webhookcmd.New(s), dispatchercmd.New(s), dispatchercmd.NewWorker(s),
		findCommand(s), quotaCommand(s), projectCommand(s), auditCommand(s), contextCommand(s),
		tokencmd.New(s, options.Bootstrap), tokencmd.WhoAmI(s),
		systemcmd.New(s), systemcmd.NewRestore(s), checkConfigCommand(s, options.ConfigLayers, options.CheckServices),
		languageServerCommand(s, thisBuild(options.Version).Version), versionCommand(s, options.Version),
	)
	for _, noun := range root.Commands() {
		acceptClientFlags(s, noun)
	}
	root.AddCommand(options.Commands...)
	s.Dev = program + " dev"
	if slices.ContainsFunc(options.Commands, func(cmd *cobra.Command) bool { return cmd.Name() == "dev" }) {
		s.Dev = s.Command("dev")
	}
	root.InitDefaultCompletionCmd()
	strictCompletion(root)
	group(root)
	addAliases(root)
	root.SetUsageFunc(usage)
	return root, s
}

// acceptClientFlags lets a noun accept the flags of its verbs that say which server to call, so that they may precede
// the noun. The program's own commands, such as the server, do not call one.
func acceptClientFlags(s *invocation.Invocation, noun *cobra.Command) {
	if !noun.HasSubCommands() {
		return
	}
	s.BindClient(noun)
	noun.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
}

// program is the name of the full program.
const program = "signalbox"

// Called returns how hints write the name by which a program was called, as a shell reads it; without one, its usual
// name.
func Called(name string) string {
	switch {
	case name == "":
		return program
	case strings.ContainsAny(name, " '\"$&();|<>*?`\\"):
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	default:
		return name
	}
}

// strictCompletion makes Cobra's own command answer wrong arguments as ours do.
func strictCompletion(root *cobra.Command) {
	for _, noun := range root.Commands() {
		if noun.Name() != "completion" {
			continue
		}
		like := invocation.Noun("", "", "")
		noun.Args, noun.RunE = like.Args, like.RunE
		for _, shell := range noun.Commands() {
			shell.Args = invocation.Args(0, 0, "")
			shell.Example = "  signalbox completion " + shell.Name() + " > completion." + shell.Name()
		}
	}
}

// Run runs one command line to its end and returns the exit code. The context's end is an interrupt.
func Run(ctx context.Context, options Options, args []string) int {
	root, s := build(options) //nolint:contextcheck // commands get theirs from Cobra
	defer s.Close()
	s.In = invocation.Interruptible(ctx, s.In)
	root.SetIn(s.In)
	root.SetArgs(args)
	err := execute(ctx, root, options, args)
	if text := exit.Line(err); text != "" {
		// an error of standard error cannot be reported
		_ = terminal.Draw(s.Err, "error: "+strings.TrimRight(text, "\n")+"\n")
	}
	return exit.Code(err)
}

// interruptGrace is how long a command may take to end by itself after an interrupt: to say what goes on without it.
const interruptGrace = 700 * time.Millisecond

// execute runs a command. After an interrupt it does not wait for one that cannot end, such as one that opens a FIFO
// without a writer. The program's own commands, such as the server, have a time of their own to stop.
func execute(ctx context.Context, root *cobra.Command, options Options, args []string) error {
	if cmd, _, err := root.Find(args); err == nil && slices.ContainsFunc(options.Commands, func(own *cobra.Command) bool {
		return within(own, cmd)
	}) {
		return root.ExecuteContext(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(interruptGrace):
		return exit.Errorf(exit.Interrupted, "interrupted")
	}
}

// within reports whether a command is another one, or below it.
func within(above, cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd == above {
			return true
		}
	}
	return false
}
