package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// listed is the JSON of one context.
type listed struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	invocation.Context
}

func contextCommand(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("context", "Manage servers by name, and select the one that commands use",
		`Contexts are kept in ~/.config/signalbox/config.yaml ($XDG_CONFIG_HOME/signalbox/config.yaml where that is set). A flag
or a variable (`+invocation.AddressVariable+`, `+invocation.ProjectVariable+`) takes precedence over the current context.`)
	noun.AddCommand(contextListCommand(s), contextUseCommand(s), contextSetCommand(s), contextDeleteCommand(s))
	return noun
}

func contextListCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List contexts",
		Example: `  signalbox context list`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			file, err := invocation.LoadContexts(invocation.ContextsPath(s.Env))
			if err != nil {
				return err
			}
			found := []listed{}
			rows := []output.Row{}
			for _, name := range file.Names() {
				item := listed{Name: name, Current: name == file.Current, Context: file.Contexts[name]}
				found = append(found, item)
				mark := ""
				if item.Current {
					mark = "*"
				}
				rows = append(rows, output.Cells(
					"CURRENT", mark, "NAME", name, "ADDRESS", item.Address, "PROJECT", item.Project,
				))
			}
			if s.Format().Structured() {
				return output.Value(s.Out, s.Format(), found)
			}
			if len(found) == 0 {
				s.Note("no contexts; create one: %s", s.Command("context set NAME --address HOST:PORT"))
				return nil
			}
			return output.Rows(s.Out, s.Format(), s.Style(), rows)
		},
	}
	s.BindOutput(cmd)
	return cmd
}

func contextUseCommand(s *invocation.Invocation) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Select the current context",
		Example:           `  signalbox context use prod`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: completeContexts(s),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(s, func(file *invocation.ContextFile) error {
				if _, ok := file.Contexts[args[0]]; !ok {
					return exit.Errorf(exit.NotFound, "there is no context %q; see \"%s\"", args[0], s.Command("context list"))
				}
				file.Current = args[0]
				s.Note("commands use %s now", file.Contexts[args[0]].Address)
				return nil
			})
		},
	}
}

func contextSetCommand(s *invocation.Invocation) *cobra.Command {
	var change invocation.Context
	cmd := &cobra.Command{
		Use:               "set NAME",
		Short:             "Create a context, or change the given values of it",
		Long:              `Create a context, or change the given values of it. The first context becomes the current one.`,
		Example:           `  signalbox context set prod --address https://signalbox.example.com --project shop --token-file ~/.signalbox-token`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: completeContexts(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			var current string
			err := changeContexts(s, func(file *invocation.ContextFile) error {
				item, exists := file.Contexts[args[0]]
				if !exists && !cmd.Flags().Changed("address") {
					return exit.Usagef("there is no context %q; to create it, give --address HOST:PORT", args[0])
				}
				if cmd.Flags().Changed("address") {
					item.Address = change.Address
				}
				if cmd.Flags().Changed("project") {
					item.Project = change.Project
				}
				if err := setFiles(cmd, &item, change); err != nil {
					return err
				}
				if err := invocation.CheckAddress(item.Address); err != nil {
					return err
				}
				if file.Contexts == nil {
					file.Contexts = map[string]invocation.Context{}
				}
				file.Contexts[args[0]] = item
				if file.Current == "" {
					file.Current = args[0]
				}
				current = file.Current
				return nil
			})
			switch {
			case err != nil:
			case current == args[0]:
				s.Note("context %q is saved; it is the current one", args[0])
			default:
				s.Note("context %q is saved; the current one is %q; to change it: %s", args[0], current,
					s.Command("context use %s", args[0]))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&change.Address, "address", "", "the `server`, host:port or URL")
	cmd.Flags().StringVar(&change.Project, "project", "", "`project` to use with it; empty: "+invocation.DefaultProject)
	cmd.Flags().StringVar(&change.TokenFile, "token-file", "", "`file` of the token to call with")
	cmd.Flags().StringVar(&change.CAFile, "ca-file", "",
		"`file` of the authorities that the server's certificate is from, PEM")
	cmd.Flags().StringVar(&change.CertFile, "cert-file", "",
		"`file` of a client certificate, PEM, for servers that require one")
	cmd.Flags().StringVar(&change.KeyFile, "key-file", "", "`file` of the client certificate's key, PEM")
	return cmd
}

// setFiles takes over the files that were given, by their absolute paths: commands are typed anywhere.
func setFiles(cmd *cobra.Command, item *invocation.Context, change invocation.Context) error {
	for name, file := range map[string]struct {
		to   *string
		path string
	}{
		"token-file": {&item.TokenFile, change.TokenFile}, "ca-file": {&item.CAFile, change.CAFile},
		"cert-file": {&item.CertFile, change.CertFile}, "key-file": {&item.KeyFile, change.KeyFile},
	} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		path := file.path
		if path != "" {
			var err error
			if path, err = filepath.Abs(path); err != nil {
				return exit.Usagef("--%s: %w", name, err)
			}
		}
		*file.to = path
	}
	return nil
}

func contextDeleteCommand(s *invocation.Invocation) *cobra.Command {
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context",
		Example:           `  signalbox context delete prod --yes`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: completeContexts(s),
		RunE: func(_ *cobra.Command, args []string) error {
			err := changeContexts(s, func(file *invocation.ContextFile) error {
				if _, ok := file.Contexts[args[0]]; !ok {
					return exit.Errorf(exit.NotFound, "there is no context %q; see \"%s\"", args[0], s.Command("context list"))
				}
				if err := confirm.Ask(s, fmt.Sprintf("Delete the context %q?", args[0])); err != nil {
					return err
				}
				delete(file.Contexts, args[0])
				if file.Current == args[0] {
					file.Current = ""
				}
				return nil
			})
			if err == nil {
				s.Note("context %q is deleted", args[0])
			}
			return err
		},
	}
	confirm.Bind(cmd)
	return cmd
}

func changeContexts(s *invocation.Invocation, change func(*invocation.ContextFile) error) error {
	path := invocation.ContextsPath(s.Env)
	file, err := invocation.LoadContexts(path)
	if err != nil {
		return err
	}
	if err := change(&file); err != nil {
		return err
	}
	return file.Save(path)
}

func completeContexts(s *invocation.Invocation) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		file, err := invocation.LoadContexts(invocation.ContextsPath(s.Env))
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return file.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}
