// Package functioncmd is the noun "function" of the command line: publish, list, show, delete.
package functioncmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("function", "Publish and manage the functions that workflows of a project call", "")
	noun.AddCommand(publishCommand(s), listCommand(s), showCommand(s), deleteCommand(s))
	return noun
}

// split splits NAME:VERSION. Without a version, the version is empty.
func split(argument string) (name, version string) {
	name, version, _ = strings.Cut(argument, ":")
	return name, version
}

func publishCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish NAME:VERSION FILE",
		Short: "Publish a file as an immutable version of a function",
		Long: `Publish a file (- for standard input) as an immutable version of a function. Workflows of the project call it as
NAME:VERSION@default. Publishing the same content again changes nothing; other content under a published version is refused.`,
		Example: `  signalbox function publish price:1.0.0 price.yaml`,
		Args:    invocation.Args(2, 2, "NAME:VERSION FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return publish(cmd.Context(), s, args[0], args[1])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func publish(ctx context.Context, s *invocation.Invocation, argument, file string) error {
	name, version := split(argument)
	if version == "" {
		return exit.Usagef("give the function a version: %s:1.0.0", name)
	}
	source, err := invocation.ReadFile("function", file, s.In)
	if err != nil {
		return err
	}
	request := &signalboxv1.PublishFunctionRequest{
		Project: s.Project(), Name: name, Version: version, Source: string(source),
	}
	response, err := invocation.Call(ctx, s, s.Workflows().PublishFunction, request, "publish function %q", argument)
	if err != nil {
		return err
	}
	if !s.Format().Structured() {
		for _, v := range response.GetViolations() {
			s.Note("%s:%d:%d: %s: %s", file, v.GetLine(), v.GetColumn(), v.GetCode(), v.GetMessage())
		}
		if !response.GetCreated() {
			s.Note("this content was published before; nothing changed")
		}
	}
	return s.Card(response, fields(response.GetFunction()))
}

func fields(f *signalboxv1.Function) []output.Field {
	return []output.Field{
		{Name: "function", Value: f.GetName()},
		{Name: "version", Value: f.GetVersion()},
		{Name: "call", Value: f.GetName() + ":" + f.GetVersion() + "@default"},
		{Name: "hash", Value: f.GetHash()},
		{Name: "published", Value: output.Moment(f.GetPublishTime())},
		{Name: "publisher", Value: f.GetPublisher()},
	}
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	request := &signalboxv1.ListFunctionsRequest{}
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the versions of functions by name, newest first",
		Example: `  signalbox function list --text price
  signalbox function list --latest`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return invocation.Listing[*signalboxv1.Function]{
				Thing: "function", None: "no functions match in project " + s.Project() + "; publish one: " +
					s.Command("function publish NAME:VERSION FILE"),
				Row: func(f *signalboxv1.Function) output.Row {
					return output.Cells(
						"FUNCTION", f.GetName(), "VERSION", f.GetVersion(), "SIZE", output.Bytes(f.GetSize()),
						"PUBLISHED", output.Moment(f.GetPublishTime()), "PUBLISHER", f.GetPublisher(), "+HASH", f.GetHash(),
					)
				},
			}.List(s, limit, func(size int32, token string) ([]*signalboxv1.Function, string, error) {
				request.Project, request.PageSize, request.PageToken = s.Project(), size, token
				response, err := invocation.Call(cmd.Context(), s, s.Workflows().ListFunctions, request, "list functions")
				return response.GetFunctions(), response.GetNextPageToken(), err
			})
		},
	}
	cmd.Flags().StringVar(&request.Text, "text", "", "only names that contain this `text`")
	cmd.Flags().StringVar(&request.Name, "name", "", "only the versions of the function `NAME`")
	cmd.Flags().BoolVar(&request.Latest, "latest", false, "of each function only the version that was published last")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most this many; 0 for all")
	s.BindClient(cmd)
	return cmd
}

func showCommand(s *invocation.Invocation) *cobra.Command {
	var source bool
	cmd := &cobra.Command{
		Use:   "show NAME[:VERSION]",
		Short: "Show a function with its source, and the workflows that call it",
		Long: `Show a function with its source, and the published versions of workflows that call it. Without a version, it is the one that
was published last.`,
		Example: `  signalbox function show price:1.0.0
  signalbox function show price --source > price.yaml`,
		Args: invocation.Args(1, 1, "NAME[:VERSION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd.Context(), s, args[0], source)
		},
	}
	cmd.Flags().BoolVar(&source, "source", false, "print the function only, byte for byte")
	s.BindClient(cmd)
	return cmd
}

func show(ctx context.Context, s *invocation.Invocation, argument string, sourceOnly bool) error {
	name, version := split(argument)
	request := &signalboxv1.GetFunctionRequest{Project: s.Project(), Name: name, Version: version}
	response, err := invocation.Call(ctx, s, s.Workflows().GetFunction, request, "show function %q", argument)
	switch {
	case err != nil:
		return err
	case sourceOnly:
		_, err := io.WriteString(s.Out, response.GetSource())
		return err
	case s.Format().Structured():
		return output.Message(s.Out, s.Format(), response)
	}
	users := make([]string, len(response.GetUsedBy()))
	for i, u := range response.GetUsedBy() {
		users[i] = u.GetWorkflow() + " " + u.GetVersion()
		if u.GetLatest() {
			users[i] += " (latest)"
		}
	}
	return output.Card(s.Out, s.Style(), append(fields(response.GetFunction()),
		output.Field{Name: "used by", Value: cmp.Or(strings.Join(users, ", "), "no published workflow")},
		output.Field{Name: "input schema", Value: response.GetInputSchema().GetJson()},
		output.Field{Name: "output schema", Value: response.GetOutputSchema().GetJson()},
		output.Field{Name: "source", Value: strings.TrimRight(response.GetSource(), "\n") + "\n"}))
}

func deleteCommand(s *invocation.Invocation) *cobra.Command {
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:   "delete NAME[:VERSION]",
		Short: "Delete one or all versions of a function; published workflows keep it",
		Long: `Delete a version of a function, or without a version all of them. Workflows that were published with it keep it, and so do their
runs; new versions of workflows cannot call it.`,
		Example: `  signalbox function delete price:1.0.0 --yes`,
		Args:    invocation.Args(1, 1, "NAME[:VERSION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version := split(args[0])
			what := fmt.Sprintf("version %s of function %q", version, name)
			if version == "" {
				what = fmt.Sprintf("all versions of function %q", name)
			}
			if err := confirm.Ask(s, fmt.Sprintf("Delete %s of project %s?", what, s.Project())); err != nil {
				return err
			}
			_, err := invocation.Call(cmd.Context(), s, s.Workflows().DeleteFunction, &signalboxv1.DeleteFunctionRequest{
				Project: s.Project(), Name: name, Version: version,
			}, "delete function %q", args[0])
			if err != nil {
				return err
			}
			if s.Format().Structured() {
				return output.Value(s.Out, s.Format(), map[string]string{"deleted": args[0]})
			}
			s.Note("deleted %s", what)
			return nil
		},
	}
	confirm.Bind(cmd)
	s.BindClient(cmd)
	return cmd
}
