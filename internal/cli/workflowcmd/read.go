package workflowcmd

import (
	"context"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func listCommand(s *session.Session) *cobra.Command {
	var text string
	var states []string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows by name",
		Args:  session.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return exit.Usagef("--limit: %d is less than none; 0 means all", limit)
			}
			return list(cmd.Context(), s, &signalboxv1.ListWorkflowsRequest{Project: s.Project(), Text: text, States: states}, limit)
		},
	}
	known := []string{"draft", "published", "paused"}
	cmd.Flags().StringVar(&text, "text", "", "only names that contain this `text`")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these `states`, separated by commas: draft, published, paused")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most this many; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *session.Session, request *signalboxv1.ListWorkflowsRequest, limit int) error {
	workflows, more, err := session.Pages(limit, func(size int32, token string) ([]*signalboxv1.Workflow, string, error) {
		ctx, cancel := s.Deadline(ctx)
		defer cancel()
		request.PageSize, request.PageToken = size, token
		response, err := s.Workflows().ListWorkflows(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, "", s.Failed(err, "list workflows")
		}
		return response.Msg.GetWorkflows(), response.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	return session.Listing[*signalboxv1.Workflow]{
		Thing: "workflow", None: "no workflows match in project " + s.Project() + "; publish one: signalbox workflow publish FILE",
		Columns: output.Columns("WORKFLOW", "STATE", "LATEST", "DRAFT", "TITLE", "UPDATED", "+CREATED", "+PAUSE REASON"),
		Row: func(workflow *signalboxv1.Workflow) []string {
			draft := ""
			if workflow.GetHasDraft() {
				draft = "yes"
			}
			return []string{
				workflow.GetName(), workflow.GetState(), workflow.GetLatestVersion(), draft, workflow.GetTitle(),
				s.Age(workflow.GetUpdateTime().AsTime()), output.Moment(workflow.GetCreateTime()), workflow.GetPauseReason(),
			}
		},
	}.Print(s, workflows, more)
}

func showCommand(s *session.Session) *cobra.Command {
	var version string
	var draft, source bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a workflow with the source of one version, or of its draft",
		Example: `  signalbox workflow show order --version 1.2.0
  signalbox workflow show order --source > order.yaml`,
		Args:              session.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			if draft && version != "" {
				return exit.Usagef("--draft and --version exclude each other")
			}
			return show(cmd.Context(), s, &signalboxv1.GetWorkflowRequest{
				Project: s.Project(), Workflow: args[0], Version: version, Draft: draft,
			}, source)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "`version` to show; the newest published one when empty")
	cmd.Flags().BoolVar(&draft, "draft", false, "show the draft")
	cmd.Flags().BoolVar(&source, "source", false, "print the document only, byte for byte")
	s.BindClient(cmd)
	return cmd
}

func show(ctx context.Context, s *session.Session, request *signalboxv1.GetWorkflowRequest, sourceOnly bool) error {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()
	response, err := s.Workflows().GetWorkflow(ctx, connect.NewRequest(request))
	if err != nil {
		return s.Failed(err, "show workflow %q", request.GetWorkflow())
	}
	version := response.Msg.GetVersion()
	source := version.GetSource()
	if version == nil {
		source = response.Msg.GetDraftSource()
	}
	switch {
	case sourceOnly:
		_, err := io.WriteString(s.Out, source)
		return err
	case s.Format().Structured():
		return output.Message(s.Out, s.Format(), response.Msg)
	}
	fields := workflowFields(response.Msg.GetWorkflow())
	if version != nil {
		fields = append(fields,
			output.Field{Name: "version", Value: version.GetVersion()},
			output.Field{Name: "hash", Value: version.GetHash()},
			output.Field{Name: "published", Value: output.Moment(version.GetPublishTime())},
			output.Field{Name: "publisher", Value: version.GetPublisher()})
	}
	fields = append(fields, timerFields(response.Msg.GetTimer())...)
	return output.Card(s.Out, s.Style(), append(fields, output.Field{Name: "source", Value: strings.TrimRight(source, "\n") + "\n"}))
}

func versionsCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "versions NAME",
		Short:             "List a workflow's published versions, newest first",
		Args:              session.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			return versions(cmd.Context(), s, args[0])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func versions(ctx context.Context, s *session.Session, name string) error {
	found, _, err := session.Pages(0, func(size int32, token string) ([]*signalboxv1.WorkflowVersion, string, error) {
		ctx, cancel := s.Deadline(ctx)
		defer cancel()
		response, err := s.Workflows().ListVersions(ctx, connect.NewRequest(&signalboxv1.ListVersionsRequest{
			Project: s.Project(), Workflow: name, PageSize: size, PageToken: token,
		}))
		if err != nil {
			return nil, "", s.Failed(err, "list the versions of workflow %q", name)
		}
		return response.Msg.GetVersions(), response.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), found)
	}
	if len(found) == 0 {
		s.Note("no version of %q is published yet", name)
		return nil
	}
	rows := make([][]string, len(found))
	for i, version := range found {
		rows[i] = []string{version.GetVersion(), output.Moment(version.GetPublishTime()), version.GetPublisher(), version.GetHash()}
	}
	return output.Rows(s.Out, s.Format(), s.Style(), output.Columns("VERSION", "PUBLISHED", "PUBLISHER", "+HASH"), rows)
}

func diffCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "diff NAME V1 V2",
		Short:             "Compare the sources of two versions; \"draft\" names the draft",
		Args:              session.Args(3, 3, "NAME V1 V2"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			return diff(cmd.Context(), s, args[0], args[1], args[2])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func diff(ctx context.Context, s *session.Session, name, from, to string) error {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()
	response, err := s.Workflows().DiffVersions(ctx, connect.NewRequest(&signalboxv1.DiffVersionsRequest{
		Project: s.Project(), Workflow: name, From: from, To: to,
	}))
	if err != nil {
		return s.Failed(err, "compare %s and %s of workflow %q", from, to, name)
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response.Msg)
	}
	if response.Msg.GetUnified() == "" {
		s.Note("the sources are equal")
		return nil
	}
	var text strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(response.Msg.GetUnified(), "\n"), "\n") {
		if session.IsTerminal(s.Out) {
			line = output.Visible(line)
		}
		text.WriteString(s.Style().Diff(line) + "\n")
	}
	_, err = io.WriteString(s.Out, text.String())
	return err
}
